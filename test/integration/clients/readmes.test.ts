import { execFile } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { isLong } from '../../figures/figure.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import { clientsFolder, languages } from './languages.ts';

// Runs the code of clients/*/README.md and docs/clients.md as a reader would: blocks become files of a folder. Only the
// base URL, the port of the receiver and the command are substituted.
const run = promisify(execFile);

interface Readme {
  readonly language: string;
  /** Makes the folder of the examples a project. */
  readonly prepare?: string;
  /** Runs one example. */
  readonly command: (file: string) => readonly [string, ...string[]];
  /** The generated names of types. */
  readonly names: () => readonly string[];
  /** Each example, and what it prints. */
  readonly examples: Readonly<Record<string, RegExp | string>>;
  /** Examples of large packages, which are only run with TEST_LONG=1: `go-ethereum` alone compiles for half a minute. */
  readonly largeExamples: Readonly<Record<string, RegExp>>;
}

const pemOf = (base64: string) => `-----BEGIN PRIVATE KEY-----\n${base64}\n-----END PRIVATE KEY-----\n`;

/** Ids of requests differ from run to run. */
const withoutIds = (text: string) => text.replaceAll(/\(request [\da-f-]{36}\)/g, '(request …)');

/** The signature of Alice's wallet, in whatever form a language prints a response. */
const tenLines = /0x0f9af48078621de0841dc488bfe5c7545d536a0bd4e04b362fc968984b511268/;
/** docs/clients.md shows the statements; its readers put them into a program. */
const goProgram = (statements: string) => `package main

import (
	"context"
	"fmt"
	"os"

	custos "custos.example/client"
)

func main() {
${statements}}
`;

/** A program with a mistake in line 3 and in each line from the sixth on. */
const wrongProgram = `from custos import iterate
from custos.api.wallets import create_wallet, list_wallets
from custos.models import CreateWaletRequest
from custos.models import CreateWalletRequest
from service import service
service.using(signer=[])
create_wallet.sync(client=service, body=CreateWalletRequest(chain_type="etherium"))
create_wallet.sync(client=service, body=CreateWalletRequest(chain_type="solana")).adress
[wallet.id for wallet in iterate(list_wallets.sync, client=service, chain_typ="solana")]
[wallet.adress for wallet in iterate(list_wallets.sync, client=service)]
`;

const typescript: Readme = {
  language: 'typescript',
  prepare: `mkdir node_modules
    ln -s '${clientsFolder}'/typescript/node_modules/* node_modules/
    ln -s '${clientsFolder}/typescript' node_modules/custos-client
    echo '{"type":"module"}' > package.json`,
  command: (file) => [process.execPath, file],
  names: () =>
    [
      ...readFileSync(join(clientsFolder, 'typescript/src/generated/api.ts'), 'utf8').matchAll(
        /^ {8}([A-Z]\w+):/gm,
      ),
    ].map(([, name]) => name!),
  examples: {
    'first.ts': /^ethereum 0x[\dA-Fa-f]{40}\n$/,
    'sign.ts': 'sign-output',
    'ten-lines.ts': tenLines,
    'retry.ts': /^true\n$/,
    'list.ts': /^(\S+\n){10,20}$/,
    'webhook.ts': /^wallet\.archived true\n$/,
    'keys.ts': /^true\n$/,
    'own-key.ts': /^true\n$/,
    'viem.ts': /^success\ntrue\n$/,
  },
  largeExamples: { 'ethers.ts': /^1\ntrue\ntrue\n$/, 'solana.ts': /^10000000n\n$/ },
};

const python: Readme = {
  language: 'python',
  command: (file) => [join(clientsFolder, 'python/.venv/bin/python'), file],
  names: () => readdirSync(join(clientsFolder, 'python/src/custos/models')),
  examples: {
    'first.py': /^ethereum 0x[\dA-Fa-f]{40}\n$/,
    'sign.py': 'sign-output',
    'ten-lines.py': tenLines,
    'retry.py': /^True\n$/,
    'list.py': /^(\S+\n){10,20}$/,
    'webhook.py': /^wallet\.archived True\n$/,
    'keys.py': /^True\n$/,
    'own_key.py': /^True\n$/,
  },
  largeExamples: { 'eth.py': /^1 0\.01\n$/ },
};

const go: Readme = {
  language: 'go',
  prepare: `cat '${clientsFolder}'/go/go.sum '${clientsFolder}'/go/ethsigner/go.sum | sort -u > go.sum
    go mod init example.com/wallets
    for module in client client/ethsigner; do
      go mod edit -replace "custos.example/$module=${clientsFolder}/go\${module#client}" -require "custos.example/$module@v0.0.0"
    done`,
  command: (file) => ['go', 'run', '-mod=mod', file, 'service.go'],
  names: () =>
    [...readFileSync(join(clientsFolder, 'go/api.gen.go'), 'utf8').matchAll(/^type (\w+)/gm)].map(
      ([, name]) => name!,
    ),
  examples: {
    'first.go': /^ethereum 0x[\dA-Fa-f]{40}\n(\w{24}\n){11,20}$/,
    'sign.go': 'sign-output',
    'ten-lines.go': tenLines,
    'retry.go': /^true\n$/,
    'webhook.go': /^wallet\.archived true\n$/,
    'keys.go': /^true\n$/,
    'own-key.go': /^true\n$/,
  },
  largeExamples: { 'eth.go': /^1 10000000000000000\n$/ },
};

const overview = readFileSync(join(clientsFolder, '../docs/clients.md'), 'utf8');
const languageOf: Readonly<Record<string, string>> = { ts: 'typescript', python: 'python', go: 'go' };

describe.each([typescript, python, go])('$language', (client) => {
  const { language, prepare, command, names, examples, largeExamples } = client;
  const readme = readFileSync(join(clientsFolder, language, 'README.md'), 'utf8');
  const marked = /<!-- test: ([\w.-]+) -->\n```(\w*)\n([\s\S]*?)```/g;
  const ofOverview = [...overview.matchAll(marked)].filter(
    ([, , written]) => languageOf[written!] === language,
  );
  const blocks = new Map(
    [...readme.matchAll(marked), ...ofOverview].map(([, name, , code]) => [
      name!,
      name === 'ten-lines.go' ? goProgram(code!) : code!,
    ]),
  );
  let reason: string | undefined;
  let sandbox: TestSandbox;
  let folder: string;
  beforeAll(async () => {
    folder = temporaryFolder();
    sandbox = await startSandbox({
      seed: 'demo',
      dataFolder: join(folder, '.custos'),
      hints: true,
      ticks: true,
      funds: true,
      confirmAfterMs: 0,
      rpcPort: 0,
    });
    await using receiver = await startWebhookReceiver();
    const port = new URL(receiver.url).port;
    for (const [name, code] of blocks) {
      const adapted = code
        .replaceAll('https://127.0.0.1:4010', sandbox.baseUrl)
        .replaceAll('http://127.0.0.1:8545', sandbox.rpcUrl!)
        .replaceAll('3000', port);
      if (name.includes('.')) writeFileSync(join(folder, name), adapted);
    }
    writeFileSync(join(folder, 'alice.pem'), pemOf(aliceKey.privateKey));
    const { missing, build } = languages.find(({ name }) => name === language)!;
    reason = await missing();
    if (reason !== undefined) return;
    await build();
    if (prepare !== undefined) await run('sh', ['-ec', prepare], { cwd: folder });
  }, 600_000);
  afterAll(async () => {
    await sandbox[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(Object.entries({ ...examples, ...(isLong ? largeExamples : {}) }))(
    '%s',
    async (name, expected) => {
      if (reason !== undefined) {
        process.stderr.write(`${name} of clients/${language} did not run: ${reason}\n`);
        return;
      }
      const [program, ...args] = command(name);
      // `NODE_OPTIONS` loads the ledger.
      const env = { ...process.env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: '.custos/ca.pem' };
      const { stdout } = await run(program, args, { cwd: folder, timeout: 80_000, env });
      if (typeof expected === 'string') expect(withoutIds(stdout)).toBe(withoutIds(blocks.get(expected)!));
      else expect(stdout).toMatch(expected);
    },
  );

  test.runIf(language === 'typescript')('a certificate without its authority is named', async () => {
    if (reason !== undefined) return;
    const env = { ...process.env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: '' };
    await expect(run(process.execPath, ['first.ts'], { cwd: folder, timeout: 80_000, env })).rejects.toThrow(
      /SELF_SIGNED_CERT_IN_CHAIN.*NODE_EXTRA_CA_CERTS/,
    );
  });

  test.runIf(language === 'python')(
    'functions and classes have types',
    async () => {
      if (reason !== undefined) return;
      const source = join(clientsFolder, 'python/src/custos');
      expect(existsSync(join(source, 'py.typed'))).toBe(true);
      const results = globSync('api/*/*.py', { cwd: source }).flatMap((path) =>
        [...readFileSync(join(source, path), 'utf8').matchAll(/^\) -> (.*):$/gm)].map(([, type]) => type!),
      );
      expect(results).toContain('Wallet');
      // Two operations have no body.
      const vague = results.filter((type) => /Any|None/.test(type) && type !== 'dict[str, Any]');
      expect(vague).toEqual(Array(4).fill('Response[Any]'));
      if (!isLong) return;
      const check = (...files: string[]) =>
        run(join(clientsFolder, 'python/.venv/bin/mypy'), ['--strict', ...files], { cwd: folder });
      const shown = [...blocks.keys()].filter((name) => name.endsWith('.py'));
      const layer = ['custos.py', 'eth.py'].map((name) => join(source, name));
      await check(...shown, ...layer, join(clientsFolder, 'python/suite.py'));
      writeFileSync(join(folder, 'wrong.py'), wrongProgram);
      const { stdout } = await check('wrong.py').catch((error: { stdout: string }) => error);
      const found = [...stdout.matchAll(/^wrong\.py:(\d+): error/gm)].map(([, line]) => Number(line));
      expect(found).toEqual([3, 6, 7, 8, 9, 10]);
    },
    300_000,
  );

  test('no generated name is a number', () => {
    if (reason !== undefined) return;
    const plain = names().map((name) => name.replace('.py', '').replaceAll('_', ''));
    expect(plain.length).toBeGreaterThan(800);
    const endsInNumber = plain.filter((name) => /\d$/.test(name) && !/(?:caip2|base64|p256)$/i.test(name));
    expect([...endsInNumber, ...plain.filter((name) => /(?:any|all|one)of|type\d/i.test(name))]).toEqual([]);
  });

  test('runs every example', () => {
    const shown = [...blocks.keys()].filter((name) => name.includes('.'));
    const helpers = shown.filter((name) => /^service\./.test(name));
    expect(shown.sort()).toEqual([...Object.keys({ ...examples, ...largeExamples }), ...helpers].sort());
  });
});
