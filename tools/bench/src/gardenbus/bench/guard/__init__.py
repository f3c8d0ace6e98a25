"""Guard on speed: CPU and memory of each process for one unit of work, beside figures that are checked in.

`python -m gardenbus.bench.guard` measures scenarios at a small size by turns with yardsticks that have no code of ours
in them, compares each process by itself, and names the process and its functions where one became worse. `readings`,
`baseline`, `assessment`, `profiles`, `report` and `page` are values alone; all else here starts and measures processes.
"""
