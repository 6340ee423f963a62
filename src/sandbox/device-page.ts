import { hash } from 'node:crypto';

/** Where the page is. */
export const DEVICE_PAGE = '/device';

const style = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 3rem auto; padding: 0 1rem; }
label { display: block; margin-top: 1rem; font-weight: 600; }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; }
button { font: inherit; padding: .5rem 1.25rem; margin: 1rem .5rem 0 0; }
#code { font: 1.75rem/1.5 ui-monospace, monospace; letter-spacing: .1em; }
`;

// The code is never decided on without a click, even if the link contains it (RFC 8628 section 5.4). Text from the
// server is set as text, so it cannot add elements.
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

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Connect a device</title>
<style>${style}</style>
</head>
<body>
<h1>Connect a device</h1>
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
<button type="submit" name="action" value="deny">Deny</button>
</form>
<div id="done" hidden>
<p><strong id="outcome"></strong>. You can return to the device.</p>
</div>
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
  // A page around this one could make the user click.
  "frame-ancestors 'none'",
].join('; ');

/**
 * The sandbox's stand-in for an app's own page where users enter the code of a device. It has no login: the user says
 * who they are, and the control plane, which answers only this machine, decides for them.
 */
export function devicePage() {
  const headers = {
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
  };
  return { contentType: 'text/html; charset=utf-8', content: Buffer.from(html), headers };
}
