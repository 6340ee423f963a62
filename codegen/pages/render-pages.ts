import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build, transform } from 'esbuild';
import { writtenGuides } from './reference-guides.ts';
import { renderGuide } from './render-guide.ts';

/** The path of the module with the pages at /docs. */
export const PAGES_PATH = 'src/generated/pages.ts';

const header = '// rendered by codegen/pages/render-pages.ts from docs/ and src/web/docs/; do not edit\n';

/** The order of docs/guides/. Files that are not listed follow by name. */
const order = [
  'first-request',
  'move-from-your-hosted-app',
  'key-quorums',
  'policies',
  'webhooks',
  'going-to-production',
];

/** The order of docs/: what a newcomer reads first, then production. Files that are not listed follow by name. */
const manualOrder = [
  ...['sandbox', 'commands', 'signing', 'policies', 'webhooks', 'json-rpc', 'clients', 'testing-library'],
  ...['ci', 'contract-tests', 'what-is-real', 'divergences', 'production', 'backups', 'monitoring', 'audit'],
];

/** Renders a module with the script and the style sheet of /docs, and the guides as HTML. */
export async function renderPages(root: string): Promise<string> {
  const guides = [
    ...pagesBelow(root, 'docs/guides', 'guides/', order),
    ...pagesBelow(root, 'docs', '', manualOrder),
    ...pagesBelow(root, 'docs/reference', 'reference/', []),
  ];
  const written = await writtenGuides(root);
  const known = new Set([...guides, ...written].map(({ file }) => file));
  const read = guides.map((guide) => ({ ...guide, markdown: readFileSync(join(root, guide.file), 'utf8') }));
  const rendered = [...read, ...written].map(({ file, path, markdown }) => ({
    path,
    ...renderGuide(markdown, file, known),
  }));
  return `${header}
/** A guide. \`path\`: below /docs/. */
export interface GuidePage {
  readonly path: string;
  readonly title: string;
  readonly html: string;
}

export const guidePages: readonly GuidePage[] = ${JSON.stringify(rendered, null, 1)};

/** Scripts, style sheet and pictures. \`name\`: below /docs/. */
export const docsFiles: readonly { readonly name: string; readonly text: string }[] = ${JSON.stringify(await docsFiles(root), null, 1)};
`;
}

interface DocsFile {
  readonly name: string;
  readonly text: string;
}

async function docsFiles(root: string): Promise<DocsFile[]> {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  const pictures = globSync('docs/guides/pictures/*.svg', { cwd: root }).sort();
  const style = styleSheets.map(read).join('\n');
  const { code } = await transform(style, { loader: 'css', minify: true });
  return [
    ...(await bundleScripts(root)),
    { name: 'docs.css', text: code },
    { name: 'icon.svg', text: read('src/web/docs/icon.svg') },
    ...pictures.map((path) => ({ name: `pictures/${basename(path)}`, text: read(path) })),
  ];
}

/** The docs share the values of colors, sizes and fonts with the inspector. */
const styleSheets = ['src/web/inspector/style/tokens.css', 'src/web/docs/docs.css', 'src/web/docs/parts.css'];

function pagesBelow(
  root: string,
  folder: string,
  prefix: string,
  first: readonly string[],
): { file: string; path: string }[] {
  const names = globSync(`${folder}/*.md`, { cwd: root }).map((file) => basename(file, '.md'));
  const ordered = [...first.filter((name) => names.includes(name)), ...names.sort()];
  return [...new Set(ordered)].map((name) => ({ file: `${folder}/${name}.md`, path: prefix + name }));
}

/** Bundles the script of every page, and the parts that it loads on demand. */
async function bundleScripts(root: string): Promise<DocsFile[]> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['src/web/docs/main.ts'],
    outdir: '.',
    write: false,
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    chunkNames: '[name]-[hash]',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles.map(({ path, text }) => ({ name: basename(path), text }));
}
