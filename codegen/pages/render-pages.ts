import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { writtenGuides } from './reference-guides.ts';
import { renderGuide } from './render-guide.ts';

/** The path of the module with the pages at /docs. */
export const PAGES_PATH = 'src/generated/pages.ts';

const header = '// rendered by codegen/pages/render-pages.ts from docs/ and src/web/docs/; do not edit\n';

/** The order of docs/guides/. Files that are not listed follow by name. */
const order = ['first-request', 'key-quorums', 'policies', 'webhooks', 'going-to-production'];

/** Renders a module with the script and the style sheet of /docs, and the guides as HTML. */
export async function renderPages(root: string): Promise<string> {
  const guides = [
    ...pagesBelow(root, 'docs/guides', 'guides/', order),
    ...pagesBelow(root, 'docs', '', []),
    ...pagesBelow(root, 'docs/reference', 'reference/', []),
  ];
  const written = await writtenGuides(root);
  const known = new Set([...guides, ...written].map(({ file }) => file));
  const read = guides.map((guide) => ({ ...guide, markdown: readFileSync(join(root, guide.file), 'utf8') }));
  const rendered = [...read, ...written].map(({ file, path, markdown }) => ({
    path,
    ...renderGuide(markdown, file, known),
  }));
  const style = readFileSync(join(root, 'src/web/docs/docs.css'), 'utf8');
  return `${header}
/** A guide. \`path\`: below /docs/. */
export interface GuidePage {
  readonly path: string;
  readonly title: string;
  readonly html: string;
}

export const guidePages: readonly GuidePage[] = ${JSON.stringify(rendered, null, 1)};

export const docsScript = ${JSON.stringify(await bundleScript(root))};

export const docsStyle = ${JSON.stringify(style)};
`;
}

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

async function bundleScript(root: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['src/web/docs/main.ts'],
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0]?.text ?? '';
}
