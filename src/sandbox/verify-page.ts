import { staticPage } from './static-page.ts';

/** The path of the page, without the token of the customer. */
const VERIFY_PAGE = '/_sandbox/verify/';

// Tokens of the simulated identity office.
const target = new RegExp(`^${VERIFY_PAGE}[0-9a-f]{32}$`);

/** The path of the page for the customer with this token. */
export function verifyPagePath(token: string): string {
  return VERIFY_PAGE + token;
}

/** Whether a path is that of the page for a customer, known or not. */
export function isVerifyPage(path: string): boolean {
  return target.test(path);
}

// Text from the server is set as text, so it cannot add elements. The page looks again for half a minute after the
// customer has done something, because the office takes two seconds to decide.
const script = `
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

/** Whether nothing is left to do of what the link was made for. */
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
    // The button is gone, and with it the focus.
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

const body = `<h1 id="title">Verification</h1>
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
 * The hosted page of the simulated identity office, to which the links of a verification lead: the customer accepts the
 * terms, and completes or declines the verification. It is open to all who know the token in its path, as at a real
 * provider.
 */
export function verifyPage() {
  return staticPage({ title: 'Verification', body, script });
}
