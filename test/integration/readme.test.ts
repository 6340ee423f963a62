import { execFile } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { recoverMessageAddress } from 'viem';
import { beforeAll, expect, test } from 'vitest';
import {
  runCommand,
  runCustos,
  type ServingCustos,
  serveCustos,
  startCustos,
  temporaryFolder,
  waitFor,
} from '../support/run-custos.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';

// Runs the commands of the README and the guides. Blocks are marked with `<!-- test: name -->`; the address, the
// folder and the program of this run are substituted.
const root = join(import.meta.dirname, '..', '..');
const documents = globSync(['README.md', 'docs/*.md'], { cwd: root }).map((path) =>
  readFileSync(join(root, path), 'utf8'),
);
const text = documents.join('\n');
const program = join(root, 'dist', 'custos.js');
const shell = promisify(execFile);

/** The code block below `<!-- test: name -->`. */
function block(name: string): string {
  const [, code] = new RegExp(`<!-- test: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(text) ?? [];
  if (code === undefined) throw new Error(`no document has a block \`${name}\``);
  return code;
}

/** The flags of the README's start command. */
function startFlags(): string[] {
  const [, flags = ''] = /npm start -- (.*) --data \.custos\n/.exec(text) ?? [];
  return flags.split(' ');
}

interface Reader extends AsyncDisposable {
  readonly custos: ServingCustos;
  /** The working folder, with `.custos` in it. */
  readonly folder: string;
  /** Runs a block in a shell after the README's first call. */
  run(code: string): Promise<string>;
}

/** A sandbox started as in the README. */
async function startReading(): Promise<Reader> {
  const folder = temporaryFolder();
  const custos = await serveCustos(['sandbox', ...startFlags(), '--data', join(folder, '.custos')]);
  return {
    custos,
    folder,
    async run(code) {
      const exports = /^export APP_ID=.*$/m.exec(block('curl'))?.[0] ?? '';
      const { stdout } = await shell('sh', ['-c', `${exports}\n${adapt(code, custos.ready.base_url)}`], {
        cwd: folder,
      });
      return stdout;
    },
    [Symbol.asyncDispose]: async () => {
      await custos.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function adapt(code: string, baseUrl: string): string {
  return code
    .replaceAll('https://127.0.0.1:4010', baseUrl)
    .replaceAll('curl --cacert', 'curl --silent --cacert')
    .replace(/npx custos (.*)$/gm, `'${process.execPath}' '${program}' $1${withUrl(code, baseUrl)}`);
}

/** Commands that use the default port get the one of this run. */
function withUrl(code: string, baseUrl: string): string {
  const isAddressed = !/npx custos (call|listen|trigger|events) /.test(code) || code.includes('--ready-file');
  return isAddressed ? '' : ` --url ${baseUrl} --data .custos`;
}

// The bundle must exist before a shell runs it.
beforeAll(async () => void (await runCustos(['--version'])), 120_000);

test('the start command and the first calls return what the README shows', async () => {
  await using reader = await startReading();
  // The clock runs, so only the time of the creation differs.
  const startedMs = Date.now();
  const created = JSON.parse(await reader.run(block('curl'))) as { created_at: number };
  expect(created).toEqual({ ...JSON.parse(block('output')), created_at: expect.any(Number) });
  expect(Math.abs(created.created_at - startedMs)).toBeLessThan(60_000);
  const { address } = JSON.parse(block('output')) as { address: string };
  const signed = JSON.parse(await reader.run(block('personal-sign'))) as {
    data: { signature: `0x${string}` };
  };
  expect(await recoverMessageAddress({ message: 'Hello', signature: signed.data.signature })).toBe(address);

  const byCommand = JSON.parse(await reader.run(block('call'))) as typeof signed;
  const { body: alice } = await reader.custos.call<{ address: string }>('GET', '/v1/wallets/ext_wal_alice');
  const { signature } = byCommand.data;
  expect(await recoverMessageAddress({ message: 'Hello', signature })).toBe(alice.address);
});

test("the signing example signs for Alice's wallet", async () => {
  await using reader = await startReading();
  const { ready, call } = reader.custos;
  const script = join(root, `readme-sign-${ready.pid}.mjs`);
  writeFileSync(script, block('sign').replaceAll('https://127.0.0.1:4010', ready.base_url));
  try {
    const { stdout } = await shell(process.execPath, [script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: ready.ca_file, NO_COLOR: '1' },
    });
    const { data } = JSON.parse(stdout) as { data: { signature: `0x${string}` } };
    const { body: alice } = await call<{ address: string }>('GET', '/v1/wallets/ext_wal_alice');
    expect(await recoverMessageAddress({ message: 'Hello', signature: data.signature })).toBe(alice.address);
  } finally {
    rmSync(script);
  }
});

test('the webhook guide creates an endpoint, forwards a triggered event and waits for it', async () => {
  await using reader = await startReading();
  await using receiver = await startWebhookReceiver();
  const hook = (code: string) => code.replaceAll('http://127.0.0.1:3000/hook', receiver.url);
  const endpoint = JSON.parse(await reader.run(hook(block('create-endpoint')))) as { secret: string };
  expect(endpoint.secret).toMatch(/^whsec_/);
  const [, flags = ''] = /npx custos (listen .*)\n/.exec(hook(block('listen'))) ?? [];
  const at = ['--url', reader.custos.ready.base_url, '--data', join(reader.folder, '.custos')];
  const listening = await startCustos([...flags.split(' '), ...at]);
  try {
    await waitFor(() => /whsec_/.test(listening.output().stdout + listening.output().stderr));
    await reader.run(block('trigger'));
    expect(await reader.run(block('events-wait'))).toContain('wallet.archived');
    // Once from the endpoint, once from `custos listen`.
    await waitFor(() => receiver.received.length >= 2);
    expect(new Set(receiver.received.map(({ body }) => body.type))).toEqual(new Set(['wallet.archived']));
  } finally {
    await listening.stop();
  }
});

test('the policy guide explains a request and replays recorded ones', async () => {
  await using reader = await startReading();
  const explanation = JSON.parse(await reader.run(block('explain'))) as { decision: string };
  expect(explanation.decision).toBe('allowed');
  await reader.custos.call('POST', '/v1/wallets/ext_wal_acme-ethereum/rpc', {
    method: 'personal_sign',
    params: { message: 'Hello', encoding: 'utf-8' },
  });
  writeFileSync(join(reader.folder, 'policy.json'), block('draft'));
  // The record of an allowed use is stored a moment after its response.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const replay = await reader.run(`${block('policy-replay').trim()} --json`);
  expect(JSON.parse(replay)).toMatchObject({ judged: 1, changed: 0 });
});

test('the CI block runs from start to end', async () => {
  const folder = temporaryFolder();
  // Replaces the tests of the reader's project.
  mkdirSync(join(folder, 'node_modules'));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ scripts: { test: `'${process.execPath}' check.mjs` } }),
  );
  writeFileSync(
    join(folder, 'check.mjs'),
    `const { app_id, app_secret } = JSON.parse((await import('node:fs')).readFileSync('custos.json'));
     const headers = { authorization: 'Basic ' + btoa(app_id + ':' + app_secret), 'service-app-id': app_id };
     const response = await fetch(process.env.CUSTOS_BASE_URL + '/v1/wallets/ext_wal_acme-ethereum', { headers });
     const { id } = await response.json();
     const archived = await fetch(process.env.CUSTOS_BASE_URL + '/v1/wallets/' + id + '/archive', { method: 'POST', headers });
     if (archived.status !== 200) process.exit(1);`,
  );
  try {
    symlinkSync(process.execPath, join(folder, 'node'));
    const { stdout } = await shell('bash', ['-ec', adapt(block('ci'), '')], {
      cwd: folder,
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    });
    expect(stdout).toContain('wallet.archived');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every npm script and every custos command of the documents exists', async () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const guides = `${text}\n${readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')}`;
  const named = [...guides.matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => name as string);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
  const commands = [...text.matchAll(/\| `npx custos ([a-z-]+(?: [a-z][a-z-]*)?(?:\\\|[a-z-]+)*)/g)];
  expect(commands.length).toBeGreaterThan(10);
  for (const [, command = ''] of commands) {
    const [group = '', verbs = ''] = command.split(' ');
    for (const verb of verbs.split('\\|')) {
      const { code, stderr } = await runCommand([group, ...(verb === '' ? [] : [verb]), '--help']);
      expect([command, verb, code, stderr]).toEqual([command, verb, 0, '']);
    }
  }
});
