import { execFile, spawnSync } from 'node:child_process';
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import {
  runCommand,
  runCustos,
  type ServingCustos,
  serveCustos,
  startCustos,
  temporaryFolder,
  waitFor,
} from '../support/run-custos.ts';

const shell = promisify(execFile);

interface WalletPage {
  data: Wallet[];
}

function makeWallet(custos: ServingCustos, chainType = 'ethereum') {
  return custos.call<Wallet>('POST', '/v1/wallets', { chain_type: chainType });
}

/** The command below the banner's "Create a wallet:". */
function commandOf(banner: string): string {
  return /\n(curl [\s\S]*?)\n\n/.exec(banner)?.[1] ?? '';
}

/** Status and body of a plain HTTP request. */
function plainGet(url: string): Promise<{ status: number | undefined; body: unknown }> {
  return new Promise((resolve, reject) => {
    httpRequest(url, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }));
    })
      .on('error', reject)
      .end();
  });
}

test('the ready file is written when the server is reachable, and deleted when it stops', async () => {
  const custos = await serveCustos(['sandbox']);
  expect(custos.ready).toEqual({
    base_url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    app_id: acmeApp.id,
    app_secret: acmeApp.secret,
    ca_file: expect.stringMatching(/\/ca\.pem$/),
    rpc_url: `${custos.ready.base_url}/_sandbox/rpc`,
    prefix: 'service',
    pid: custos.process.pid,
  });
  // It contains the secret, so no other user may read it.
  expect(statSync(custos.readyFile).mode & 0o077).toBe(0);
  const { status } = await makeWallet(custos);
  expect(status).toBe(200);
  const { code } = await custos.stop('SIGINT');
  expect(code).toBe(0);
  expect(existsSync(custos.readyFile)).toBe(false);
});

test('--rpc-port serves JSON-RPC over plain HTTP, which `custos env` and `custos rpc` find', async () => {
  const custos = await serveCustos(['sandbox', '--rpc-port', '0']);
  const { rpc_url: url } = custos.ready as unknown as { rpc_url: string };
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
  const response = await fetch(`${url}/ethereum`, { method: 'POST', body });
  expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 1, result: '0x1' });
  const at = ['--ready-file', custos.readyFile];
  expect((await runCommand(['env', '--format', 'json', ...at])).stdout).toContain(
    `"CUSTOS_RPC_URL": "${url}"`,
  );
  const asked = await runCommand(['rpc', 'base', 'eth_getBalance', `0x${'0e'.repeat(20)}`, 'latest', ...at]);
  expect(asked).toMatchObject({ code: 0, stdout: '0x0\n' });
  const block = await runCommand([
    'rpc',
    '8453',
    'eth_getBlockByNumber',
    '"earliest"',
    'false',
    '--json',
    ...at,
  ]);
  expect(JSON.parse(block.stdout)).toMatchObject({ number: '0x0' });
  const key = '51T5ZJJd816Xi3M3yf81j9AAXsRWJBNTmKystogP5jw9';
  const held = await runCommand(['rpc', 'solana', 'getBalance', key, '--json', ...at]);
  expect(JSON.parse(held.stdout)).toMatchObject({ value: 0, context: { slot: expect.any(Number) } });
  const refused = await runCommand(['rpc', 'base', 'eth_mineForever', ...at]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('(-32601)') });
  await custos.stop('SIGINT');
});

/** Sends SIGTERM to the process in the moment in which its ready file appears. */
const SIGNAL_AT_ONCE = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { renameSync, existsSync } = fs;
  const file = process.argv[process.argv.indexOf('--ready-file') + 1];
  fs.renameSync = (from, to) => {
    if (to === file && existsSync(file)) console.error('the stale file is still there');
    renameSync(from, to);
    if (to === file) process.kill(process.pid, 'SIGTERM');
  };
  syncBuiltinESMExports();
`;

test.each(['mock', 'sandbox'])(
  '%s: a signal as soon as the ready file is there ends it well, and the file goes',
  async (command) => {
    const file = join(temporaryFolder(), 'ready.json');
    // A process that was killed has left its file.
    const { pid } = spawnSync('true');
    writeFileSync(file, JSON.stringify({ base_url: 'https://127.0.0.1:1', pid }));
    const custos = await startCustos([command, '--port', '0', '--ready-file', file, '--quiet'], {
      // Holds the process where it has written the file.
      nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(SIGNAL_AT_ONCE)}`],
    });
    const { code, stderr } = await custos.ended();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(existsSync(file)).toBe(false);
    rmSync(dirname(file), { recursive: true });
  },
);

describe('a sandbox with its defaults', () => {
  let custos: ServingCustos;
  beforeAll(async () => {
    custos = await serveCustos(['sandbox']);
  });
  afterAll(() => custos[Symbol.asyncDispose]());

  test('a sandbox with its defaults prints a banner whose curl works when pasted', async () => {
    await waitFor(() => custos.output().stdout.includes('Ctrl-C'));
    const banner = custos.output().stdout;
    for (const value of [
      custos.ready.base_url,
      acmeApp.id,
      acmeApp.secret,
      custos.ready.ca_file,
      'in memory',
      `Inspector   ${custos.ready.base_url}/\n`,
      '/docs',
    ]) {
      expect(banner).toContain(value);
    }
    const { stdout } = await shell('sh', ['-c', commandOf(banner)]);
    expect(JSON.parse(stdout)).toMatchObject({ chain_type: 'ethereum', owner_id: null });
  });

  test('a sandbox with its defaults refuses plain HTTP with an explanation', async () => {
    const url = `${custos.ready.base_url.replace('https:', 'http:')}/openapi.json`;
    expect(await plainGet(url)).toEqual({ status: 403, body: { error: 'HTTPS is required.' } });
  });

  test('a sandbox with its defaults keeps its port: another one that is started there ends with advice', async () => {
    const { port } = new URL(custos.ready.base_url);
    const { code, stdout, stderr } = await runCustos(['sandbox', '--port', port]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      `custos: port ${port} on 127.0.0.1 is in use; stop the other process, or choose another port with --port (0 selects a free one)\n`,
    );
  });
});

describe('a sandbox of another brand that accepts plain HTTP and has an admin port', () => {
  let custos: ServingCustos;
  beforeAll(async () => {
    const brand = ['--prefix', 'acme', '--app-secret', "it's_a_secret"];
    custos = await serveCustos(['sandbox', ...brand, '--plain-http', '--admin-port', '0']);
  });
  afterAll(() => custos[Symbol.asyncDispose]());
  const plainUrl = () => custos.ready.base_url.replace('https:', 'http:');

  test('a sandbox of another brand that accepts plain HTTP and has an admin port prints a curl that works for its clients', async () => {
    await waitFor(() => custos.output().stdout.includes('Ctrl-C'));
    const command = commandOf(custos.output().stdout);
    expect(command).toContain('acme-app-id');
    const { stdout } = await shell('sh', ['-c', command]);
    expect(JSON.parse(stdout)).toMatchObject({ chain_type: 'ethereum' });
  });

  test('a sandbox of another brand that accepts plain HTTP and has an admin port serves health and metrics on the admin port', async () => {
    await makeWallet(custos);
    const metrics = await (await fetch(`${custos.ready.admin_url}/metrics`)).text();
    expect(metrics).toMatch(/^custos_http_requests_total\{operation="createWallet",status="200"\} [12]$/m);
    expect(await (await fetch(`${custos.ready.admin_url}/readyz`)).json()).toEqual({ status: 'ready' });
    expect(await (await fetch(`${custos.ready.admin_url}/healthz`)).json()).toEqual({ status: 'ok' });
  });

  test('serves the reference completely from the installed package, over plain HTTP', async () => {
    const page = await (await fetch(`${plainUrl()}/docs`)).text();
    const parts = [...page.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map((match) => match[1]);
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts)
      expect(`${part} ${(await fetch(plainUrl() + part)).status}`).toBe(`${part} 200`);
    const document = await (await fetch(`${plainUrl()}/openapi.json`)).text();
    expect(document).toContain('acme-app-id');
    expect(document).not.toContain('service-app-id');
    expect(JSON.parse(document)).toMatchObject({ openapi: '3.1.0' });
  });
});

test('a seeded restart on the same folder keeps wallets, credentials and certificate, and draws new ids', async () => {
  const folder = temporaryFolder();
  const args = ['sandbox', '--data', folder, '--seed', 'demo'];
  const first = await serveCustos([...args, '--app-secret', 'a-secret-of-our-own']);
  const { body: wallet } = await makeWallet(first);
  const signing = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  const signed = await first.call<{ data: unknown }>('POST', `/v1/wallets/${wallet.id}/rpc`, signing);
  expect(signed.status).toBe(200);
  // Killed without a clean stop: acknowledged changes are kept.
  await first.stop('SIGKILL');

  await using second = await serveCustos(args);
  expect(second.ready.app_secret).toBe('a-secret-of-our-own');
  expect(second.ready.ca_file).toBe(first.ready.ca_file);
  expect(second.ready.ca_file.startsWith(folder)).toBe(true);
  expect((await second.call<Wallet>('GET', `/v1/wallets/${wallet.id}`)).body).toEqual(wallet);
  // ECDSA here is deterministic (RFC 6979): the same key gives the same signature.
  const again = await second.call('POST', `/v1/wallets/${wallet.id}/rpc`, signing);
  expect(again.body).toEqual(signed.body);
  // Keys and secrets are their owner's alone.
  for (const file of ['sandbox.json', 'certificate.json']) {
    expect(statSync(join(folder, file)).mode & 0o077).toBe(0);
  }
  const { status, body: next } = await makeWallet(second);
  expect(status).toBe(200);
  expect(next.id).not.toBe(wallet.id);
  expect(next.address).not.toBe(wallet.address);
  const { body } = await second.call<WalletPage>('GET', '/v1/wallets');
  expect(body.data.map(({ id }) => id).sort()).toEqual([wallet.id, next.id].sort());
});

test('the same seed with a frozen clock gives the same responses byte for byte, another seed gives others', async () => {
  const answersOf = async (seed: string): Promise<string[]> => {
    await using custos = await serveCustos(['sandbox', '--seed', seed, '--seed-data', '--clock', 'frozen']);
    const made = [await makeWallet(custos), await makeWallet(custos, 'solana')];
    const signing = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
    const rest = [
      await custos.call('POST', `/v1/wallets/${made[0]?.body.id}/rpc`, signing),
      await custos.call('GET', '/v1/wallets'),
      await custos.call('GET', '/_sandbox/apps'),
      await custos.call('POST', '/_sandbox/reset'),
      await makeWallet(custos),
    ];
    return [...made, ...rest].map(
      ({ status, headers, text }) => `${status} ${headers['x-request-id']} ${text}`,
    );
  };
  const [demo, demoAgain, other] = [
    await answersOf('demo'),
    await answersOf('demo'),
    await answersOf('other'),
  ];
  expect(demoAgain).toEqual(demo);
  expect(other[0]).not.toEqual(demo[0]);
  // After the reset, the first wallet has the same id again; its request has one of its own, for `custos why`.
  const parts = (answer = '') => [answer.slice(0, 41), answer.slice(41)];
  const [[request, wallet], [first, same]] = [parts(demo.at(-1)), parts(demo[0])];
  expect(wallet).toEqual(same);
  expect(request).not.toEqual(first);
});

test('--quiet prints nothing, --json prints one object per line', async () => {
  const quiet = await serveCustos(['sandbox', '--quiet']);
  await makeWallet(quiet);
  expect(await quiet.stop()).toEqual({ code: 0, stdout: '', stderr: '' });

  const custos = await serveCustos(['sandbox', '--json']);
  await makeWallet(custos);
  const { stdout, stderr } = await custos.stop();
  expect(stderr).toBe('');
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines[0]).toEqual({ msg: 'ready', ...custos.ready });
  expect(lines[1]).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-/),
    msg: 'request',
    request_id: expect.any(String),
    operation: 'createWallet',
    app: acmeApp.id,
    status: 200,
    duration_ms: expect.any(Number),
  });
});

test('requests are counted with --rate-limit', async () => {
  await using custos = await serveCustos(['sandbox', '--rate-limit', '2/2']);
  const statuses: number[] = [];
  for (let count = 0; count < 6; count += 1) statuses.push((await custos.call('GET', '/v1/wallets')).status);
  expect(statuses).toContain(429);
  expect(statuses[0]).toBe(200);
});

test('apps are administered on the folder of a running sandbox', async () => {
  const folder = temporaryFolder();
  const data = ['--data', folder, '--json'];
  const custos = await serveCustos(['sandbox', '--data', folder]);
  const created = await runCommand(['apps', 'create', '--name', 'Globex', ...data]);
  expect(created.code).toBe(0);
  const globex = JSON.parse(created.stdout) as { id: string; secret: string };
  const listed = await runCommand(['apps', 'list', ...data]);
  expect(JSON.parse(listed.stdout)).toEqual([
    { id: acmeApp.id, name: 'Acme', created_at: expect.any(String) },
    { id: globex.id, name: 'Globex', created_at: expect.any(String) },
  ]);
  const credentials = Buffer.from(`${globex.id}:${globex.secret}`).toString('base64');
  const headers = { authorization: `Basic ${credentials}`, 'service-app-id': globex.id };
  expect((await custos.call<WalletPage>('GET', '/v1/wallets', undefined, headers)).body.data).toEqual([]);

  const rotated = await runCommand(['apps', 'rotate-secret', acmeApp.id, ...data]);
  const { secret } = JSON.parse(rotated.stdout) as { secret: string };
  expect(secret).not.toBe(acmeApp.secret);
  await custos.stop();
  // The next start reports the current secret and does not restore the old one.
  await using next = await serveCustos(['sandbox', '--data', folder]);
  expect(next.ready.app_secret).toBe(secret);
  expect((await next.call('GET', '/v1/wallets')).status).toBe(200);
  const old = `Basic ${Buffer.from(`${acmeApp.id}:${acmeApp.secret}`).toString('base64')}`;
  expect((await next.call('GET', '/v1/wallets', undefined, { authorization: old })).status).toBe(401);

  const unknown = await runCommand(['apps', 'rotate-secret', 'unknown', ...data]);
  expect({ code: unknown.code, stderr: unknown.stderr }).toEqual({
    code: 1,
    stderr: 'custos: App not found\n',
  });
});

test('the log has refusals with the first sentence of their hints, and no reads of the control plane', async () => {
  const custos = await serveCustos(['sandbox']);
  expect((await custos.call('GET', '/_sandbox/clock')).status).toBe(200);
  expect((await custos.call('GET', '/_sandbox/requests/unknown')).status).toBe(404);
  expect((await custos.call('GET', '/v1/wallts')).status).toBe(404);
  await waitFor(() => custos.output().stderr.includes('hint='));
  const { stderr } = custos.output();
  expect(stderr).toContain('operation=getRequest');
  expect(stderr).toMatch(/hint=No operation has the path `\/v1\/wallts`\n/);
  expect(stderr).not.toContain('operation=getClock');
});

test('a stop finishes requests in progress', async () => {
  const custos = await serveCustos(['sandbox']);
  const begun = Array.from({ length: 20 }, () => makeWallet(custos));
  await waitFor(() => custos.output().stderr.includes('operation=createWallet'));
  const stopped = custos.stop();
  const answers = await Promise.allSettled(begun);
  const finished = answers.filter((answer) => answer.status === 'fulfilled');
  // Requests that had not arrived were not accepted; those that had were answered completely.
  expect(finished.length).toBeGreaterThan(0);
  for (const { value } of finished) expect(value.status).toBe(200);
  expect((await stopped).code).toBe(0);
});
