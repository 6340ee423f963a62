import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { makeProgram } from '../../../src/cli/program.ts';
import { sandboxFixtures } from '../../../src/testing/fixtures.ts';
import { sandboxMatchers } from '../../../src/testing/matchers.ts';
import { alice, startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';

// Runs the code of the README and of docs/*.md that no other test runs, against one sandbox in this process. Blocks with
// `<!-- test: name -->` are run by readme.test.ts, those of docs/guides/ by guides.test.ts, and those of docs/clients.md
// by the tests of the clients.
const root = join(import.meta.dirname, '..', '..', '..');

interface Block {
  readonly document: string;
  readonly language: string;
  readonly code: string;
}

const blocks: readonly Block[] = globSync(['README.md', 'docs/*.md'], { cwd: root })
  .filter((path) => path !== 'docs/clients.md')
  .flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/(<!-- test: .* -->\n)?```(\w*)\n([\s\S]*?)```/g)]
      .filter(([, mark]) => mark === undefined)
      .map(([, , language = '', code = '']) => ({ document: path, language, code })),
  );

const used = new Set<Block>();

function blocksOf(document: string, language: string): readonly Block[] {
  const found = blocks.filter((each) => each.document === document && each.language === language);
  for (const each of found) used.add(each);
  return found;
}

let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ seed: 'demo' });
});
afterAll(async () => {
  await sandbox.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The words of the commands in shell code that start this program. */
function commandsIn(code: string): string[][] {
  return code
    .replaceAll('\\\n', ' ')
    .split('\n')
    .flatMap((line) => {
      const [, rest] =
        /^\s*(?:\$ )?(?:npx )?custos (?!sandbox$)(.*)$/.exec(line.replace(/ (?:#|>|&).*$/, '')) ?? [];
      if (rest === undefined) return [];
      return [
        [...rest.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) => word.replaceAll(/^['"]|['"]$/g, '')),
      ];
    });
}

test('every command of the documents exists, with the options that it is given', () => {
  const program = makeProgram();
  const faults = blocks
    .filter(({ language }) => ['sh', 'console'].includes(language))
    .flatMap((block) => commandsIn(block.code).map((words) => ({ block, words })))
    .flatMap(({ block, words }) => {
      used.add(block);
      let command: Command = program;
      const rest = words.includes('--') ? words.slice(0, words.indexOf('--')) : [...words];
      for (;;) {
        const next = command.commands.find((child) => child.name() === rest[0]);
        if (next === undefined) break;
        command = next;
        rest.shift();
      }
      const { unknown } = command.parseOptions(rest);
      const isGroup = command.commands.length > 0 && command !== program && rest.length > 0;
      const isKnown =
        command !== program && unknown.length === 0 && !(isGroup && rest[0]?.startsWith('-') === false);
      return isKnown ? [] : [`${block.document}: custos ${words.join(' ')}`];
    });
  expect(faults).toEqual([]);
});

/** The commands that a reader runs beside a sandbox, and that need nothing else. */
const runnable = new Set(['call', 'token', 'faults', 'rpc', 'faucet', 'coverage']);

test('the commands about a running sandbox succeed', async () => {
  const at = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
  // What the documents assume to have happened before.
  await sandbox.attempt('getWallet', { path: { wallet_id: 'none' } });
  const isRun = ([name = '']: readonly string[]): boolean => runnable.has(name);
  const commands = blocks
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => commandsIn(code))
    .filter(isRun);
  expect(commands.length).toBeGreaterThan(12);
  for (const words of commands) {
    const inFolder = words.map((word) =>
      word.replace(/^((?:html|junit)=)?([\w-]+\.(?:html|xml|txt))$/, `$1${folder}/$2`),
    );
    const { code, stderr } = await runCommand([...inFolder, ...at]);
    // Thresholds of an example are not met by the few requests here.
    const expected = words.includes('--fail-under') ? [0, 1] : [0];
    expect({
      words,
      code: expected.includes(code ?? -1) ? 0 : code,
      stderr: code === 0 ? '' : stderr,
    }).toEqual({
      ...{ words, code: 0 },
      stderr: code === 0 ? '' : expect.any(String),
    });
    // The rules of an example must not meet the commands after it.
    await sandbox.faults.clear();
  }
});

/** Runs TypeScript or JavaScript with these values in place of its imports. */
async function evaluate(code: string, values: Readonly<Record<string, unknown>>): Promise<void> {
  const stripped = stripTypeScriptTypes(code).replaceAll(/^import [\s\S]*?from '.*';$/gm, '');
  const names = Object.keys(values);
  const AsyncFunction = (async () => undefined).constructor as new (
    ...parts: string[]
  ) => (...given: unknown[]) => Promise<void>;
  await new AsyncFunction(...names, stripped)(...Object.values(values));
}

test('the examples of the testing library pass', async () => {
  const [start, vitest, , keep] = blocksOf('docs/testing-library.md', 'ts');
  await evaluate(start!.code, { alice, startSandbox });
  const written: ((context: { sandbox: TestSandbox }) => Promise<void>)[] = [];
  const base = { extend: () => (_name: string, body: (typeof written)[number]) => void written.push(body) };
  await evaluate(vitest!.code, { base, expect, sandboxFixtures, sandboxMatchers });
  await evaluate(keep!.code, { base, sandboxFixtures });
  const [jest] = blocksOf('docs/testing-library.md', 'js');
  const globals = { sandbox, alice, sandboxMatchers };
  const test = (_name: string, body: (typeof written)[number]) => void written.push(body);
  await evaluate(jest!.code, { globalThis: globals, expect, test });
  expect(written).toHaveLength(2);
  for (const body of written) await body({ sandbox });
});

test('the configuration and the scenario of docs/sandbox.md are accepted', async () => {
  const [config] = blocksOf('docs/sandbox.md', 'json');
  const file = join(folder, 'custos.config.json');
  writeFileSync(file, config!.code);
  await using own = await startSandbox({ config: file });
  const till = await own.call('getWallet', { path: { wallet_id: 'ext_wal_till' } });
  expect(till.owner_id).not.toBeNull();
  const [scenario] = blocksOf('docs/sandbox.md', 'yaml');
  const arazzo = join(folder, 'refuse.yaml');
  writeFileSync(arazzo, scenario!.code);
  const { steps } = await sandbox.runScenario(arazzo);
  expect(steps.map(({ failures }) => failures)).toEqual([[]]);
});

test('the files of the documents can be read', () => {
  for (const { code } of blocksOf('docs/commands.md', 'json')) expect(JSON.parse(code)).toBeTypeOf('object');
  for (const { code } of blocksOf('docs/cells.md', 'json')) expect(JSON.parse(code)).toBeTypeOf('object');
  for (const { code } of blocksOf('docs/ci.md', 'yaml')) expect(parse(code)).toBeTypeOf('object');
  for (const { code } of blocksOf('docs/monitoring.md', 'yaml')) expect(parse(code)).toBeTypeOf('object');
});

/** The beginnings of blocks that no machine of ours can run, or that only show something. */
const shown = [
  // They need Docker, the packed package, a database server or a node of others.
  ...['docker ', 'CONTAINER_ENGINE', 'import { GenericContainer', 'npx @redocly/cli', 'kill -HUP', 'useradd'],
  ...['wal_level', 'pg_basebackup', 'restore_command', 'touch /restored', 'create role', '   createdb'],
  // For an administrator who has looked at the database.
  ...['drop schema if exists', 'delete from wallet_uses'],
  // They need a cluster of Citus, on which they were followed by hand.
  ...['   apt-get install', '   shared_preload_libraries', '   create database', String.raw`   \c custos`],
  ...['select table_name, nodename', '  pg_dump'],
  // Run by the tests of JSON-RPC on Solana, with ports of their own.
  "import { Connection } from '@solana/web3.js'",
  // Run by the test of the reporter, with files of its own.
  ...["import { defineConfig } from 'vitest/config'", "reporters: ['default', [", "reporter: [['list'], ["],
  ...[
    'npm ci && npm start',
    'Of the 12 operations',
    '{"version": 1,',
    'NODE_EXTRA_CA_CERTS',
    'curl --cacert',
  ],
  ...['npm install', 'export DATABASE_URL'],
];

test('every block of the documents is run, or cannot be', () => {
  const others = blocks.filter(
    (block) => !used.has(block) && !shown.some((text) => block.code.startsWith(text)),
  );
  expect(others.map(({ document, code }) => `${document}: ${code.slice(0, 60)}`)).toEqual([]);
});
