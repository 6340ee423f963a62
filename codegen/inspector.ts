import { basename, join, relative } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const source = join(root, 'src', 'web', 'inspector');

/** A file of the built inspector. `path` is relative to its folder. */
interface BuiltFile {
  readonly path: string;
  readonly contents: string | Uint8Array;
}

/** The path under which the server offers the files. */
const FOLDER = '/inspector/';

/**
 * Bundles the pages of the inspector: `index.html`, one style sheet, the code of the shell and a chunk for each page.
 * All names except `index.html` change with their content, so that browsers can cache the files.
 */
export async function bundleInspector(): Promise<{
  readonly files: readonly BuiltFile[];
  /** Paths relative to the project's root. */
  readonly inputs: readonly string[];
  /** The files that a browser loads before its first page is drawn. */
  readonly firstLoad: readonly string[];
}> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: { main: join(source, 'main.tsx'), style: join(source, 'inspector.css') },
    inject: [join(source, 'first-load.ts')],
    outdir: '/',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  const outputs = Object.entries(result.metafile.outputs).map(([path, output]) => ({
    ...output,
    name: basename(path),
  }));
  const nameOf = (entry: string): string =>
    outputs.find(({ entryPoint }) => entryPoint?.endsWith(entry))?.name ?? '';
  const [script, style, page] = [nameOf('main.tsx'), nameOf('inspector.css'), nameOf('pages/requests.tsx')];
  const importsOf = (name: string): string[] =>
    outputs
      .filter((output) => output.name === name)
      .flatMap(({ imports }) => imports)
      .filter(({ kind }) => kind === 'import-statement')
      .map(({ path }) => basename(path));
  const preloaded = [...new Set([...importsOf(script), page, ...importsOf(page)])].filter(
    (name) => name !== script,
  );
  return {
    files: [
      { path: 'index.html', contents: indexPage({ script, style, preloaded }) },
      ...result.outputFiles.map(({ path, contents }) => ({ path: basename(path), contents })),
    ],
    inputs: Object.keys(result.metafile.inputs).map((path) => relative(root, join(root, path))),
    firstLoad: ['index.html', script, style, ...preloaded],
  };
}

function indexPage(names: { script: string; style: string; preloaded: readonly string[] }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Custos</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${FOLDER}${names.style}">
${names.preloaded.map((name) => `<link rel="modulepreload" href="${FOLDER}${name}">\n`).join('')}<script type="module" src="${FOLDER}${names.script}"></script>
</head>
<body>
<div id="inspector"></div>
<noscript>The inspector needs JavaScript. The reference of the API is at <a href="/docs">/docs</a>.</noscript>
</body>
</html>
`;
}
