import { hash } from 'node:crypto';

/** A page of the sandbox that its own script fills. */
interface PageParts {
  readonly title: string;
  /** HTML of the body, without the script. */
  readonly body: string;
  readonly script: string;
  /** Rules beside those that all pages have. */
  readonly style?: string;
}

// Text has a contrast of 7 to 1 or more in both schemes (WCAG 2.2, 1.4.6), and buttons are 44 pixels high (2.5.5).
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
 * A page whose content security policy allows its own script and style, by their hashes, and calls to its own server;
 * no other page can frame it.
 */
export function staticPage({ title, body, script, style: ownStyle = '' }: PageParts) {
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
    // A page around this one could make the user click.
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
