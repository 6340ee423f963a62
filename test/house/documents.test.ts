import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './source-files.ts';

interface Document {
  /** Relative to the root. */
  readonly path: string;
  readonly text: string;
}

const read = (path: string): Document => ({ path, text: readFileSync(join(root, path), 'utf8') });
const documents = globSync(['*.md', 'docs/**/*.md', 'src/**/*.md', 'bench/*.md'], { cwd: root })
  .sort()
  .map(read);

/** Whether a path contains a name to be filled in, or is created at run time outside version control. */
const isPlaceholder = (path: string): boolean => /[<>…]|^bench\/(results|node_modules)\b/.test(path);
const topFolders = /^(src|test|openapi|codegen|mocks|bench|docs)\//;

test('paths that documents name in code marks exist', () => {
  const missing = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/`([\w.@{},*/<>…-]+)`/g)]
      .map(([, named = '']) => named)
      .filter((named) => topFolders.test(named) && !isPlaceholder(named))
      .filter((named) => globSync(named, { cwd: root }).length === 0)
      .map((named) => `${path}: ${named}`),
  );
  expect(missing).toEqual([]);
});

const tree = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
}).split('\n');

test('files that documents name without their folder exist, or are what the reader or the program writes', () => {
  const sources = sourceFiles('src/**/*.ts').map(({ text }) => text);
  const missing = documents.flatMap(({ path, text }) => {
    const blocks = [...text.matchAll(/^```[\s\S]*?^```/gm)].join('\n');
    return [...text.matchAll(/`((?:[\w@-]+\/)*[\w@.-]+\.(?:ts|tsx|js|mjs|cjs|css|json|yaml|txt|sql|md))`/g)]
      .map(([, named = '']) => named)
      .filter((named) => !topFolders.test(named))
      .filter((named) => !tree.some((file) => file === named || file.endsWith(`/${named}`)))
      .filter((named) => !blocks.includes(named))
      .filter((named) => !sources.some((source) => source.includes(`${named}'`)))
      .map((named) => `${path}: ${named}`);
  });
  expect(missing).toEqual([]);
});

test('READMEs in src name only files of their folder, except by path, also in pictures', () => {
  const missing = documents
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/(?<![\w/.@*-])([\w-]+\.(?:ts|tsx))\b/g)]
        .map(([, named = '']) => named)
        .filter((named) => !existsSync(join(root, dirname(path), named)))
        .map((named) => `${path}: ${named}`),
    );
  expect(missing).toEqual([]);
});

test('files that comments name exist', () => {
  const missing = sourceFiles('src/**/*.{ts,tsx}').flatMap(({ path, text }) =>
    [...text.matchAll(/^\s*(?:\/?\*+|\/\/).*$/gm)]
      .flatMap(([line]) => [...line.matchAll(/`([\w./-]*\w\.tsx?)`/g)])
      .map(([, named = '']) => named)
      .filter((named) => !tree.some((file) => file === named || file.endsWith(`/${named}`)))
      .map((named) => `${path}: ${named}`),
  );
  expect(missing).toEqual([]);
});

test('links of documents lead to files and headings that exist', () => {
  const broken = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => !leadsSomewhere(path, target))
      .map((target) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

function leadsSomewhere(from: string, target: string): boolean {
  const [file = '', heading] = target.split('#');
  const path = file === '' ? from : normalize(join(dirname(from), file));
  if (!existsSync(join(root, path))) return false;
  if (heading === undefined) return true;
  const headings = [...read(path).text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => anchorOf(title));
  return headings.includes(heading);
}

// As code hosts make anchors of headings.
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

test('the tables of ARCHITECTURE.md have each room and each noun, once', () => {
  const { text } = read('ARCHITECTURE.md');
  const foldersOf = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  const rooms = [...text.matchAll(/^\| `src\/(\w+)\/` \|/gm)].map(([, name]) => name);
  expect(rooms.sort()).toEqual(foldersOf('src'));
  const layers = [...text.matchAll(/^\| `src\/domain\/(\w+)\/` \|[^|]*\|([^|]*)\|$/gm)];
  expect(layers.map(([, layer]) => layer).sort()).toEqual(foldersOf('src/domain'));
  for (const [, layer, nouns = ''] of layers) {
    expect([...nouns.matchAll(/`([\w-]+)`/g)].map(([, noun]) => noun)).toEqual(
      foldersOf(`src/domain/${layer}`),
    );
  }
});

test('the README stays short, and links every guide', () => {
  const { text } = read('README.md');
  expect(text.split('\n').length).toBeLessThanOrEqual(120);
  const guides = globSync(['docs/*.md', '*.md'], { cwd: root }).filter((path) => path !== 'README.md');
  expect(guides.filter((path) => !text.includes(`(${path})`))).toEqual([]);
});

test('each decision has a number, a title of that number, a status, its three parts and a line in the index', () => {
  const records = globSync('docs/decisions/[0-9]*.md', { cwd: root }).sort();
  const index = read('docs/decisions/README.md').text;
  const faults = records.flatMap((path, position) => {
    const { text } = read(path);
    const name = path.slice('docs/decisions/'.length);
    const number = position + 1;
    return [
      ...(name.startsWith(`${String(number).padStart(4, '0')}-`)
        ? []
        : [`${path}: expected number ${number}`]),
      ...(/^Status: (accepted|superseded by decision \d+)\b.*\.$/m.test(text) ? [] : [`${path}: no status`]),
      ...(text.startsWith(`# ${number}. `) ? [] : [`${path}: expected the title \`# ${number}. …\``]),
      ...['## Context', '## Decision', '## Consequences']
        .filter((part) => !text.includes(`\n${part}\n`))
        .map((part) => `${path}: no \`${part}\``),
      ...(index.includes(`(${name})`) ? [] : [`${path}: not in the index`]),
    ];
  });
  expect(faults).toEqual([]);
});
