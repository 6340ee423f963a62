import { hash } from 'node:crypto';

/** A page of the sandbox whose content its own script builds. */
interface PageParts {
  readonly title: string;
  /** The HTML of the body, without the script. */
  readonly body: string;
  readonly script: string;
  /** Styles in addition to those that all pages share. */
  readonly style?: string;
}

// Text has a contrast of at least 7 to 1 in both color schemes (WCAG 2.2, 1.4.6), and buttons are 44 pixels high
// (2.5.5).
const sharedStyle = `
:root { color-scheme: light dark; --text: #1b1b1f; --back: #ffffff; --accent: #1a469f; --on-accent: #ffffff; --bad: #8f1118; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ececf1; --back: #16171b; --accent: #a9c4ff; --on-accent: #10131a; --bad: #ffb8b3; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 28rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; color: var(--text); background: var(--back); }
label { display: block; margin-top: 1rem; font-weight: 600; }
input { font: inherit; color: inherit; background: var(--back); width: 100%; min-height: 44px; padding: .5rem; border: 1px solid var(--text); border-radius: .25rem; }
button { font: inherit; min-height: 44px; padding: .5rem 1.25rem; margin: 1rem .5rem 0 0; border: 2px solid var(--accent); border-radius: .5rem; color: var(--on-accent); background: var(--accent); }
button.second { color: var(--accent); background: var(--back); }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
[role=alert] { font-weight: 600; color: var(--bad); }
`;

/**
 * Builds a page. Its content security policy allows only its own script and style, by their hashes, and calls to its
 * own server. No other page can frame it.
 */
function staticPage({ title, body, script, style: ownStyle = '' }: PageParts) {
  const style = sharedStyle + ownStyle;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
<noscript>This page needs JavaScript.</noscript>
<script>${script}</script>
</body>
</html>
`;
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${hash('sha256', script, 'base64')}'`,
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    // A page that frames this one could trick the user into a click.
    "frame-ancestors 'none'",
  ].join('; ');
  const headers = {
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
  };
  return { contentType: 'text/html; charset=utf-8', content: Buffer.from(html), headers };
}

/** The path of the page on which users enter a device's code. */
export const DEVICE_PAGE = '/device';

const style = `
#code { font: 1.75rem/1.5 ui-monospace, monospace; letter-spacing: .1em; }
`;

// A code is approved or refused only after a click, even if the link contains it (RFC 8628 section 5.4). Strings from
// the server are inserted as text, so they cannot add elements.
const script = `
const byId = (id) => document.getElementById(id);
const show = (id) => { for (const part of ['enter', 'ask', 'done']) byId(part).hidden = part !== id; };
const say = (text) => { byId('message').textContent = text; };
let userCode = '';

async function send(method, body) {
  const answer = await fetch('/_sandbox/device_codes/' + encodeURIComponent(userCode), {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answered = await answer.json();
  if (!answer.ok) throw new Error(answered.error);
  return answered;
}

async function lookUp(typed) {
  userCode = typed.trim();
  say('');
  try {
    const code = await send('GET');
    if (code.status !== 'pending') throw new Error('this code is ' + code.status);
    byId('app').textContent = code.app_name;
    byId('code').textContent = code.user_code;
    show('ask');
  } catch (error) {
    show('enter');
    say(error.message);
  }
}

async function decide(action) {
  const user = byId('user').value.trim();
  say('');
  try {
    await send('POST', user.includes('@') ? { action, email: user } : { action, user_id: user });
    byId('outcome').textContent = action === 'approve' ? 'Approved' : 'Denied';
    show('done');
  } catch (error) {
    say(error.message);
  }
}

byId('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  lookUp(byId('typed').value);
});
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  decide(event.submitter.value);
});
const given = new URLSearchParams(location.search).get('user_code');
if (given) lookUp(given);
`;

const body = `<h1>Connect a device</h1>
<p id="message" role="alert"></p>
<form id="enter">
<label for="typed">Code on the device</label>
<input id="typed" name="typed" autocomplete="off" autocapitalize="characters" required autofocus>
<button type="submit">Continue</button>
</form>
<form id="ask" hidden>
<p>A device asks for access as a user of <strong id="app"></strong>. Approve it only if the device shows this code:</p>
<p id="code"></p>
<label for="user">Your e-mail address or user id</label>
<input id="user" name="user" autocomplete="off" required>
<button type="submit" name="action" value="approve">Approve</button>
<button type="submit" name="action" value="deny" class="second">Deny</button>
</form>
<div id="done" hidden>
<p><strong id="outcome"></strong>. You can return to the device.</p>
</div>`;

/**
 * Builds the sandbox's version of the page on which an app's users enter a device's code. It has no login: users say
 * who they are, and the control plane, which serves only this machine, decides for them.
 */
function devicePage() {
  return staticPage({ title: 'Connect a device', body, script, style });
}

/** The start of the page's path. The customer's token follows it. */
const VERIFY_PAGE = '/_sandbox/verify/';

// A token of the simulated identity office is 32 hex digits.
const target = new RegExp(`^${VERIFY_PAGE}[0-9a-f]{32}$`);

export function verifyPagePath(token: string): string {
  return VERIFY_PAGE + token;
}

/** Returns whether a path has the form of a customer's page. The customer may not exist. */
function isVerifyPage(path: string): boolean {
  return target.test(path);
}

// Strings from the server are inserted as text, so they cannot add elements. After an action of the customer, the page
// polls for half a minute, because the office decides after two seconds.
const verifyScript = `
const byId = (id) => document.getElementById(id);
const say = (text) => { byId('message').textContent = text; };
const address = '/_sandbox/verification_pages/' + location.pathname.split('/').pop();
const purpose = location.hash === '#terms' ? 'terms' : 'verification';
const buttons = [...document.querySelectorAll('button')];
const statusTexts = {
  pending: 'not accepted yet',
  not_started: 'not started',
  under_review: 'under review',
  approved: { terms: 'accepted', verification: 'approved' },
};

async function send(action) {
  const answer = await fetch(address, action === undefined ? {} : {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ action }),
  });
  const answered = await answer.json();
  if (answer.status === 404) throw new Error('This link is not known here.');
  if (!answer.ok) throw new Error(answered.error);
  return answered;
}

function showStatus(part, status) {
  const text = statusTexts[status] ?? status;
  byId(part + '-status').textContent = typeof text === 'string' ? text : text[part];
}

function showList(id, texts) {
  byId(id).hidden = texts.length === 0;
  byId(id).lastElementChild.replaceChildren(...texts.map((text) => {
    const item = document.createElement('li');
    item.textContent = text.replaceAll('_', ' ');
    return item;
  }));
}

function show(page) {
  byId('title').textContent = page.kind === 'business' ? 'Verify your organization' : 'Verify your identity';
  document.title = byId('title').textContent;
  byId('environment').textContent = page.environment;
  showStatus('terms', page.terms);
  showStatus('verification', page.verification);
  for (const button of buttons) button.hidden = !page.actions.includes(button.value);
  showList('requirements', page.requirements_due);
  showList('reasons', page.rejection_reasons);
  byId('back').hidden = page.redirect_uri === null;
  if (page.redirect_uri !== null) byId('back').firstElementChild.href = page.redirect_uri;
  byId('page').hidden = false;
}

/** True once every step of this link is done. */
function isDone({ actions }) {
  return !actions.includes('accept_terms') && (purpose === 'terms' || !actions.includes('complete'));
}

async function lookAgain(times) {
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const page = await send();
  show(page);
  if (page.verification === 'under_review' && times > 1) await lookAgain(times - 1);
}

async function act(button) {
  for (const each of buttons) each.disabled = true;
  say('');
  try {
    const page = await send(button.value);
    show(page);
    // The focused button was removed, so move the focus.
    byId(button.value === 'accept_terms' ? 'terms' : 'verification').focus();
    if (page.redirect_uri !== null && isDone(page)) location.assign(page.redirect_uri);
    else if (page.verification === 'under_review') void lookAgain(15).catch(() => {});
  } catch (error) {
    say(error.message);
  } finally {
    for (const each of buttons) each.disabled = false;
  }
}

for (const button of buttons) button.addEventListener('click', () => act(button));
send().then((page) => {
  show(page);
  byId(purpose).scrollIntoView();
}).catch((error) => say(error.message));
`;

const verifyBody = `<h1 id="title">Verification</h1>
<p>This is the simulated identity office of a sandbox. It asks for no data and verifies nothing.</p>
<p id="message" role="alert"></p>
<div id="page" hidden>
<p>Environment: <strong id="environment"></strong></p>
<section id="terms" aria-labelledby="terms-title" tabindex="-1">
<h2 id="terms-title">Terms of service</h2>
<p role="status">Status: <strong id="terms-status"></strong></p>
<button type="button" value="accept_terms">Accept the terms</button>
</section>
<section id="verification" aria-labelledby="verification-title" tabindex="-1">
<h2 id="verification-title">Verification</h2>
<p role="status">Status: <strong id="verification-status"></strong></p>
<div id="requirements" hidden><p>Still required:</p><ul></ul></div>
<div id="reasons" hidden><p>Reasons:</p><ul></ul></div>
<button type="button" value="complete">Complete the verification</button>
<button type="button" value="decline" class="second">Decline</button>
</section>
<p id="back" hidden><a rel="noreferrer">Return to the app</a></p>
</div>`;

/**
 * Builds the hosted page of the simulated identity office, to which the links of a verification lead. The customer
 * accepts the terms on it, and completes or declines the verification. As with a real provider, anyone who knows the
 * token in its path can open it.
 */
function verifyPage() {
  return staticPage({ title: 'Verification', body: verifyBody, script: verifyScript });
}

/** The page at `/` if the inspector was not built: a redirect to the reference. */
const startPage = {
  status: 302,
  contentType: 'text/plain; charset=utf-8',
  content: Buffer.alloc(0),
  headers: { location: '/docs' },
};

const pages = { device: devicePage(), verify: verifyPage() };

export function findSandboxPage(path: string) {
  if (path === '/') return startPage;
  if (path === DEVICE_PAGE) return pages.device;
  return isVerifyPage(path) ? pages.verify : undefined;
}
