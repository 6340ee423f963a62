import { staticPage } from './static-page.ts';

/** Where the page is. */
export const DEVICE_PAGE = '/device';

const style = `
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
 * The sandbox's stand-in for an app's own page where users enter the code of a device. It has no login: the user says
 * who they are, and the control plane, which answers only this machine, decides for them.
 */
export function devicePage() {
  return staticPage({ title: 'Connect a device', body, script, style });
}
