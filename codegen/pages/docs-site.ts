import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { argv } from 'node:process';
import { Agent } from 'undici';
import { startSandbox } from '../../src/compose/sandbox.ts';
import { docsFiles, guidePages } from '../../src/generated/pages.ts';
import { escapeHtml } from '../../src/server/docs-html.ts';
import { renderGuide } from './render-guide.ts';

// Writes the pages of /docs as a folder that any host can serve, below any path, with a landing page made from the
// README:
//
// npm run docs -- [folder]
//
// The pages are those of a sandbox with `--seed demo --seed-data`, so ids and keys are the ones that a reader's own
// sandbox has.

const root = join(import.meta.dirname, '..', '..');

/** The address and the file that the documents name. */
const WRITTEN = { baseUrl: 'https://127.0.0.1:4010', caFile: '.custos/ca.pem' };

/** A static site cannot set headers, so the policy is in the page. */
const POLICY = `<meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'">`;

/** Writes the site. Files of an earlier build are deleted. */
export async function writeDocsSite(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const sandbox = await startSandbox({ port: 0, seed: 'demo', seedData: true, logLevel: 'silent' });
  const dispatcher = new Agent({ connect: { ca: readFileSync(sandbox.caFile) } });
  const read = async (path: string): Promise<string> => {
    const { statusCode, body } = await dispatcher.request({ origin: sandbox.baseUrl, path, method: 'GET' });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${path} returned ${statusCode}`);
    return text.replaceAll(sandbox.baseUrl, WRITTEN.baseUrl).replaceAll(sandbox.caFile, WRITTEN.caFile);
  };
  try {
    const start = await read('/docs');
    write('reference.html', asFile(start, 'reference.html'));
    for (const { path } of guidePages) write(`${path}.html`, asFile(await read(`/docs/${path}`), path));
    for (const [, id] of start.matchAll(/href="\/docs#\/\w+\/(\w+)"/g)) {
      write(`operations/${id}.json`, await read(`/docs/operations/${id}.json`));
    }
    const settings = JSON.parse(await read('/docs/settings.json')) as object;
    write('settings.json', JSON.stringify({ ...settings, origin: WRITTEN.baseUrl }));
    for (const path of ['docs/search.json', 'openapi.json']) write(basename(path), await read(`/${path}`));
    for (const { name, text } of docsFiles) write(name, text);
    write('landing.css', readFileSync(join(root, 'src/web/docs/landing.css'), 'utf8'));
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const { html, picture } = landingPage(readme, start);
    write('index.html', asFile(html, 'index.html'));
    copyFileSync(join(root, picture), join(folder, basename(picture)));
  } finally {
    await dispatcher.close();
    await sandbox.close();
  }
}

/** Returns a page with relative links, so that the folder works below any path. `path` is the path of the page. */
function asFile(html: string, path: string): string {
  const up = '../'.repeat(path.split('/').length - 1) || './';
  return html
    .replace('<head>', `<head>\n${POLICY}`)
    .replace('class="brand" href="/docs"', `class="brand" href="${up}index.html"`)
    .replace('data-root="/docs/"', `data-root="${up}" data-ending=".html"`)
    .replaceAll(
      / (href|src)="\/(openapi\.json|docs)([^"#]*)(#[^"]*)?"/g,
      (...found: (string | undefined)[]) => {
        const [, attribute, start, rest = '', anchor = ''] = found;
        if (start === 'openapi.json') return ` ${attribute}="${up}openapi.json"`;
        const target = rest.replace(/^\//, '');
        const file = target === '' ? 'reference.html' : /\.\w+$/.test(target) ? target : `${target}.html`;
        return ` ${attribute}="${up}${file}${anchor}"`;
      },
    );
}

/** The sections of the README that answer what, why and how, in this order. Sections that it lacks are left out. */
const shown = ['Start', 'First call', 'Why trust it', 'What people use today', 'Status'];

/** Returns the landing page. `page` is another page, whose header it gets. */
function landingPage(readme: string, page: string): { readonly html: string; readonly picture: string } {
  const [opening = '', ...sections] = readme.split(/^## /m);
  const [, alt = '', picture = ''] = /^!\[([^\]]*)\]\(([^)]+)\)/m.exec(opening) ?? [];
  if (picture === '') throw new Error('the README begins without a picture');
  const [what = '', ...why] = opening
    .split(/\n\n+/)
    .filter((part) => !/^[#!<[]/.test(part))
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const known = new Set(guidePages.map(({ path }) => `docs/${path}.md`));
  const rendered = (markdown: string): string => renderGuide(markdown, 'README.md', known).html;
  const chosen = shown.flatMap((title) => {
    const found = sections.find((section) => section.startsWith(`${title}\n`));
    return found === undefined ? [] : [`<section>${rendered(`## ${found}`)}</section>`];
  });
  const guides = guidePages.filter(({ path }) => path.startsWith('guides/'));
  const cards = guides.map(
    ({ path, title }, position) =>
      `<li><a href="/docs/${path}"><strong>${escapeHtml(title)}</strong><span>Guide ${position + 1} of ${guides.length}</span></a></li>`,
  );
  const main = `<div class="hero">
<h1>${rendered(what).replaceAll(/<\/?p>/g, '')}</h1>
${rendered(why.join('\n\n'))}
<p class="choices"><a href="/docs/guides/first-request">Sign your first request</a><a href="/docs">API reference</a></p>
<figure class="shot"><img src="/docs/${basename(picture)}" alt="${escapeHtml(alt)}"></figure>
</div>
${chosen.join('\n')}
<ol class="cards">${cards.join('')}</ol>`;
  const header = page.slice(page.indexOf('<header>'), page.indexOf('</header>') + '</header>'.length);
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Custos</title>
<meta name="description" content="${escapeHtml(what)}">
<link rel="icon" type="image/svg+xml" href="/docs/icon.svg">
<link rel="stylesheet" href="/docs/docs.css">
<link rel="stylesheet" href="/docs/landing.css">
<script src="/docs/main.js" type="module"></script>
</head>
<body class="landing" data-page="landing" data-root="/docs/">
<a class="skip" href="#main">Skip to the text</a>
${header
  .replace(' aria-current="true"', '')
  .replace(/<button id="menu"[^\n]*\n/, '')
  .replace(/<a class="narrow"[^\n]*\n/, '')}
<main id="main">
${main}
</main>
<footer>Apache-2.0. These pages are files: <code>npm run docs</code> wrote them.</footer>
</body>
</html>
`;
  return { html, picture };
}

if (import.meta.main) {
  const folder = resolve(argv[2] ?? join(root, 'site'));
  await writeDocsSite(folder);
  console.log(
    `wrote ${folder}: serve it with any host, for example python3 -m http.server --directory ${folder}`,
  );
}
