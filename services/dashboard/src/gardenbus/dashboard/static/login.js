// A login by link: the token stands behind the # of the address, which no server sees; this page sends it, once.

const words = document.getElementById("words");
const token = location.hash.slice(1);

async function parsed(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error?.message ?? `HTTP ${response.status}`);
  return body;
}

async function ways() {
  const { how, hasSignOn } = await parsed(await fetch("/api/login"));
  document.getElementById("sign-on").hidden = !hasSignOn;
  return how;
}

async function begin() {
  try {
    const how = await ways();
    if (!token) {
      words.textContent = `To get in, ${how}.`;
      return;
    }
    history.replaceState(null, "", "/login");
    await parsed(await fetch("/api/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) }));
    location.replace("/");
  } catch (error) {
    words.textContent = `${error.message}.`;
  }
}

begin();
addEventListener("hashchange", () => location.reload());
