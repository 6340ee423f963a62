import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, describe, expect, vi } from 'vitest';
import { decodeSnapshot, encodeSnapshot } from '../../../src/sandbox/snapshot-file.ts';
import { type SandboxContext, sandboxFixtures } from '../../../src/testing/fixtures.ts';
import { keptFile } from '../../../src/testing/keep.ts';
import { matchersFor, type SandboxMatchers, sandboxMatchers } from '../../../src/testing/matchers.ts';
import coverageReporter from '../../../src/testing/reporter.ts';
import { alice, bob, type Caller, carol, startSandbox } from '../../../src/testing/testing.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

expect.extend(sandboxMatchers);

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends SandboxMatchers {}
}

const test = base.extend<SandboxContext>(sandboxFixtures({ clock: 'frozen' }));

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const signing = (wallet: string) => ({
  path: { wallet_id: wallet },
  body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const,
});

async function countWallets(caller: Caller): Promise<number> {
  return (await caller.call('listWallets')).data.length;
}

test('the clock of a sandbox runs, or is frozen at the time that its test chooses', async () => {
  const startedMs = Date.now();
  await using running = await startSandbox({ seedData: false });
  expect(await running.clock.now()).toBeGreaterThanOrEqual(startedMs);
  const time = new Date('2027-03-01T09:00:00Z');
  await using frozen = await startSandbox({ seedData: false, clock: time });
  expect(await frozen.clock.now()).toBe(time.getTime());
});

describe('a sandbox of the testing library', () => {
  test('a sandbox of the testing library is called with types, and each test gets it as it started', async ({
    sandbox,
  }) => {
    const wallet = await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
    expect(wallet.chain_type).toBe('solana');
    expect(await countWallets(sandbox)).toBe(5);
  });

  test('a sandbox of the testing library does not keep what an earlier test created', async ({ sandbox }) => {
    expect(await countWallets(sandbox)).toBe(4);
  });

  test('a sandbox of the testing library signs as its users; refusals say what is missing', async ({
    sandbox,
  }) => {
    const signed = await sandbox.as(alice).call('walletRpc', signing('ext_wal_alice'));
    expect(signed.method).toBe('personal_sign');
    const refused = sandbox.as(bob).call('walletRpc', signing('ext_wal_alice'));
    await expect(refused).rejects.toMatchObject({ name: 'CallRefusedError', status: 401 });
    const { status, error } = await sandbox.attempt('getWallet', { path: { wallet_id: 'ext_wal_nobody' } });
    expect({ status, error: error?.error }).toEqual({ status: 404, error: 'Wallet not found' });
    for (const signers of [
      [alice, bob],
      [carol, alice],
    ]) {
      const update = { path: { wallet_id: 'ext_wal_treasury' }, body: { display_name: 'Treasury 2' } };
      expect((await sandbox.as(...signers).attempt('updateWallet', update)).status).toBe(200);
    }
  });

  test('a sandbox of the testing library has snapshots, a clock, a faucet, blocks and faults', async ({
    sandbox,
  }) => {
    await sandbox.snapshot('before');
    const funded = await sandbox.faucet(acme.wallet_id, { chain: 'base', amount: '2' });
    expect(funded.raw_balance).toBe('2000000000000000000');
    await sandbox.mine();
    await sandbox.load('before');
    const { balances } = await sandbox.call('getWalletBalance', {
      path: acme,
      query: { chain: 'base', asset: 'eth' },
    });
    expect(balances[0]?.raw_value).toBe('0');
    expect(await sandbox.clock.advance(60_000)).toBe(Date.UTC(2026, 0, 1, 0, 1));
    expect(await sandbox.clock.set(new Date('2026-07-01T00:00:00Z'))).toBe(Date.UTC(2026, 6, 1));
    await sandbox.faults.add({ effect: 'error', code: 'internal_error', operation: 'getWallet', count: 1 });
    expect((await sandbox.attempt('getWallet', { path: acme })).status).toBe(500);
    expect((await sandbox.attempt('getWallet', { path: acme })).status).toBe(200);
    expect(await sandbox.faults.clear()).toBe(1);
  });

  test('a sandbox of the testing library waits for events', async ({ sandbox }) => {
    const waiting = sandbox.waitForEvent('user.created', {
      where: { 'user.linked_accounts.0.address': 'dora@example.com' },
    });
    await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carl@example.com' }] },
    });
    await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'dora@example.com' }] },
    });
    expect((await waiting).payload).toMatchObject({ type: 'user.created' });
    await expect(sandbox).toHaveEvent('user.created');
    await expect(sandbox).not.toHaveEvent('wallet.archived');
    await expect(expect(sandbox).toHaveEvent('user.created', { type: 'other' })).rejects.toThrow(
      /2 of this type with other values: type: expected "other", got "user.created"/,
    );
    await expect(expect(sandbox).toHaveEvent('wallet.archived')).rejects.toThrow(
      'none of this type, but user.created',
    );
    await expect(sandbox.waitForEvent('wallet.archived', { timeoutMs: 50 })).rejects.toThrow(
      'no event `wallet.archived` within 50 ms',
    );
  });

  test('a sandbox of the testing library is trusted by its own fetch, and by the process on request', async ({
    sandbox,
  }) => {
    const answer = await sandbox.fetch(`${sandbox.baseUrl}/openapi.json`);
    expect(answer.status).toBe(200);
    // As generated clients call it.
    const credentials = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
    const created = await sandbox.fetch(
      new Request(`${sandbox.baseUrl}/v1/wallets`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${credentials}`,
          'service-app-id': sandbox.appId,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ chain_type: 'solana' }),
      }),
    );
    expect(await created.json()).toMatchObject({ chain_type: 'solana' });
    const status = () =>
      new Promise((resolve, reject) => {
        get(`${sandbox.baseUrl}/openapi.json`, { agent: false }, (response) => {
          response.destroy();
          resolve(response.statusCode);
        }).on('error', reject);
      });
    await expect(status()).rejects.toThrow(/certificate/);
    sandbox.trust();
    expect(await status()).toBe(200);
    expect((await fetch(`${sandbox.baseUrl}/openapi.json`)).status).toBe(200);
  });

  test('a refusal is compared by code and data; a failure names each difference and the page of the request', async ({
    sandbox,
  }) => {
    const refused = await sandbox.attempt('walletRpc', signing('ext_wal_alice'));
    expect(refused.inspectorUrl).toBe(`${sandbox.baseUrl}/#/requests/${refused.headers['x-request-id']}`);
    await expect(refused).toBeRefusedWith(refused.error?.code ?? '');
    await expect(refused).not.toBeRefusedWith('policy_violation');
    const failure = expect(expect(refused).toBeRefusedWith('policy_violation', { rule: 'Messages' })).rejects;
    await failure.toThrow(
      /code: expected `policy_violation`, got .*; rule: expected `Messages`, got \[\].*\n {2}https:.*#\/requests\//,
    );
    const unknown = await sandbox.attempt('getWallet', { path: { wallet_id: 'unknown' } });
    await expect(expect(unknown).toBeRefusedWith('not_found')).rejects.toThrow('got none, as for a 404');
    const transaction = { to: `0x${'1'.repeat(40)}`, value: '0xde0b6b3a7640000', chain_id: 8453 } as const;
    const denied = await sandbox.as(alice, bob).attempt('walletRpc', {
      path: { wallet_id: 'ext_wal_treasury' },
      body: { method: 'eth_signTransaction', params: { transaction } },
    });
    await expect(denied).toBeRefusedWith('policy_violation', { rule: 'Transactions up to 0.1 ether' });
    await expect(denied).not.toBeRefusedWith('policy_violation', { rule: 'Messages' });
  });

  test('a balance is compared in units', async ({ sandbox }) => {
    await sandbox.faucet('ext_wal_alice', { chain: 'base', amount: '2.5' });
    await expect(sandbox).toHaveBalance('ext_wal_alice', '2.5');
    await expect(sandbox).toHaveBalance('ext_wal_alice', '0', { asset: 'usdc' });
    await expect(expect(sandbox).toHaveBalance('ext_wal_alice', '3')).rejects.toThrow(
      'expected ext_wal_alice to have 3 eth on base, got 2.5',
    );
  });

  test('a sandbox of the testing library answers as the contract says; anything else does not match', async ({
    sandbox,
  }) => {
    const created = await sandbox.attempt('createWallet', { body: { chain_type: 'ethereum' } });
    await expect(created).toMatchContract();
    await expect(await sandbox.attempt('getWallet', { path: { wallet_id: 'none' } })).toMatchContract();
    await expect({ ...created, data: { ...created.data, chain_tipe: 1 } }).not.toMatchContract();
    await expect({ ...created, status: 418 }).not.toMatchContract();
    const { address: _, ...data } = created.data!;
    const broken = { ...created, data: { ...data, chain_tipe: 1, owner_id: 5, policy_ids: ['p', 1] } };
    const failure = await expect(broken)
      .toMatchContract()
      .then(String, (error: Error) => error.message);
    expect(failure.split('\n').slice(1, -1).sort()).toEqual([
      '  /address: is missing',
      '  /chain_tipe: unknown property',
      '  /owner_id: expected string or null, got 5',
      '  /policy_ids/1: expected string, got 1',
    ]);
    expect(failure).toContain('differs from its document in 4 places');
    const fetched = await sandbox.fetch(`${sandbox.baseUrl}/v1/wallets`);
    expect(fetched.status).toBe(401);
    await expect(fetched).toMatchContract('listWallets');
    expect(await fetched.json()).toMatchObject({ code: 'missing_or_invalid_token' });
  });
});

base('responses of a sandbox with a prefix are compared under its names', async () => {
  await using sandbox = await startSandbox({ prefix: 'acme' });
  const user = await sandbox.attempt('createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'dora@example.com' }] },
  });
  expect(user.data?.id).toMatch(/^did:acme:/);
  const judge = (prefix: string) => matchersFor(prefix).toMatchContract(user);
  expect([(await judge('acme')).pass, (await judge('service')).pass]).toEqual([true, false]);
});

base('many run at once, each with its own state, soon after the first', async () => {
  await using first = await startSandbox();
  const others = await Promise.all(Array.from({ length: 3 }, () => startSandbox({ seedData: false })));
  await first.call('createWallet', { body: { chain_type: 'ethereum' } });
  expect(await Promise.all(others.map(countWallets))).toEqual([0, 0, 0]);
  await Promise.all(others.map((other) => other.close()));
});

const inFolder = async (work: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'custos-kept-'));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

base('a sandbox that records no requests by its configuration file is reset, and keeps nothing', () =>
  inFolder(async (folder) => {
    const config = join(folder, 'custos.config.json');
    writeFileSync(config, JSON.stringify({ record: 'off' }));
    await using sandbox = await startSandbox({ config, seedData: false });
    await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
    await sandbox.reset();
    expect(await countWallets(sandbox)).toBe(0);
    await expect(sandbox.keep(join(folder, 'kept.custos'))).rejects.toThrow('does not record');
    await using recording = await startSandbox({ config, seedData: false, record: true });
    await recording.keep(join(folder, 'kept.custos'));
    expect(readdirSync(folder)).toContain('kept.custos');
  }),
);

base('a sandbox is closed even if its requests cannot be collected', () =>
  inFolder(async (folder) => {
    vi.stubEnv('CUSTOS_COVERAGE_FOLDER', join(folder, 'coverage'));
    mkdirSync(join(folder, 'coverage'));
    const sandbox = await startSandbox({ seedData: false });
    vi.unstubAllEnvs();
    rmSync(join(folder, 'coverage'), { recursive: true });
    await expect(sandbox.close()).rejects.toThrow('ENOENT');
    await expect(fetch(sandbox.baseUrl)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  }),
);

describe('what a test did can be kept', () => {
  test('the file of a failed test has its requests with their reasons, its events and its state', ({
    sandbox,
  }) =>
    inFolder(async (folder) => {
      await sandbox.call('getWallet', { path: acme });
      const kept = join(folder, 'kept');
      const { sandbox: fixture } = sandboxFixtures({ keepOnFailure: kept });
      const run = (name: string, state: string) => {
        const context = {
          startedSandbox: sandbox,
          task: {
            ...{ name, suite: { name: 'Payouts', suite: { name: 'Shop' } }, result: { state } },
            file: { filepath: join(process.cwd(), 'test', 'payouts.test.ts') },
          },
        };
        return fixture(context, async (given) => {
          await given.call('createWallet', { body: { chain_type: 'solana', display_name: 'Kept' } });
          await given.attempt('walletRpc', signing('ext_wal_alice'));
        });
      };
      await run('passes', 'pass');
      await run('fails: in 2 ways', 'fail');
      const file = keptFile(kept, join('test', 'payouts.test.ts'), ['Shop', 'Payouts', 'fails: in 2 ways']);
      const [ignored, state = '', requestsOfTest = ''] = readdirSync(kept).sort();
      expect(ignored).toBe('.gitignore');
      expect(readFileSync(join(kept, '.gitignore'), 'utf8')).toBe('*\n');
      expect(state).toMatch(/^Shop-Payouts-fails-in-2-ways-[0-9a-f]{8}\.custos$/);
      expect(join(kept, state)).toBe(file);
      const archive = JSON.parse(readFileSync(join(kept, requestsOfTest), 'utf8'));
      const operations = archive.log.entries.map((entry: { _operationId: string }) => entry._operationId);
      expect(operations).toEqual(['createWallet', 'walletRpc']);

      const shown = await startCustos(['inspect', file, '--print']);
      try {
        await waitFor(() => shown.output().stdout.includes('Ctrl-C'));
        const [url = ''] = shown.output().stdout.split('\n');
        const at = ['--url', url.slice(0, url.indexOf('/#/'))];
        const { stdout } = await runCommand(['logs', '--json', '--no-follow', ...at]);
        const requests = stdout
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line));
        expect(requests).toMatchObject([
          { operation: 'createWallet', status: 200, subject: { name: 'Kept' } },
          { operation: 'walletRpc', status: 401, hint: expect.stringContaining('Alice') },
        ]);
        expect((await runCommand(['why', ...at])).stdout).toContain('Alice');
        const clock = JSON.parse((await runCommand(['clock', '--json', ...at])).stdout);
        expect(clock).toMatchObject({ frozen: true });
      } finally {
        await shown.stop();
      }
    }));

  test('each test has a file of its own, whose name a file system accepts', () =>
    inFolder(async (folder) => {
      const long = '送金'.repeat(60);
      const files = [
        keptFile(folder, 'a.test.ts', ['Payouts', 'fails']),
        keptFile(folder, 'b.test.ts', ['Payouts', 'fails']),
        keptFile(folder, 'a.test.ts', ['Payouts fails']),
        keptFile(folder, 'a.test.ts', [`${long}1`]),
        keptFile(folder, 'a.test.ts', [`${long}2`]),
        keptFile(folder, 'a.test.ts', ['?']),
      ];
      for (const file of files) writeFileSync(file, '');
      expect(readdirSync(folder)).toHaveLength(files.length);
      expect(files[3]).toMatch(/\/(送金){16}送-[0-9a-f]{8}\.custos$/);
    }));

  test('a file that nothing has kept is refused', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'other');
      expect((await runCommand(['inspect', file])).stderr).toContain('does not exist');
      writeFileSync(file, 'other');
      expect(await runCommand(['inspect', file])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('not a snapshot of a sandbox'),
      });
    }));

  test('a file whose requests cannot be read is refused without the name of an option that was not given', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'broken.custos');
      await using recording = await startSandbox({ seedData: false, record: true });
      await recording.call('listWallets');
      await recording.keep(file);
      const broken = { ...decodeSnapshot(readFileSync(file)), requests: Buffer.from([9, 0, 0, 0, 1]) };
      writeFileSync(file, Buffer.concat(encodeSnapshot(broken)));
      const { code, stderr } = await runCommand(['inspect', file, '--print']);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('the recorded requests in the file cannot'),
      ]);
      expect(stderr).not.toContain('--load');
    }));

  test('the reporter measures all sandboxes of a run together, across their resets', () =>
    inFolder(async (folder) => {
      const json = join(folder, 'coverage.json');
      const print = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
      try {
        const reporter = coverageReporter({ reports: { json }, failUnder: { errors: 90 } });
        for (const chain of ['ethereum', 'solana'] as const) {
          await using own = await startSandbox({ seedData: false });
          const wallet = await own.call('createWallet', { body: { chain_type: chain } });
          if (chain === 'solana') await own.call('archiveWallet', { path: { wallet_id: wallet.id } });
          await own.reset();
          await own.attempt('getWallet', { path: { wallet_id: 'none' } });
        }
        expect(reporter.onEnd()).toBeUndefined();
        reporter.onBegin();
        reporter.onTestBegin();
        expect(reporter.onEnd()).toEqual({ status: 'failed' });
        const { figures, requests, called, rows } = JSON.parse(readFileSync(json, 'utf8'));
        expect({ requests, called, operations: figures.operations.covered }).toEqual({
          requests: 5,
          called: 3,
          operations: 3,
        });
        const counted = (name: string) => rows.find((row: { name: string }) => row.name === name).count;
        expect([counted('event wallet.archived'), counted('getWallet 404 not_found')]).toEqual([1, 2]);
        expect(print.mock.calls.flat().join('\n')).toContain('Of the 3 operations that you call');
        reporter.onTestRunStart();
        expect(reporter.onEnd()).toEqual({ status: 'failed' });
        expect(print.mock.calls.flat().join('\n')).toContain('so nothing of the contract is covered');
        const reporterOfJest = coverageReporter({}, { failUnder: { errors: 40 } });
        expect(reporterOfJest.getLastError()).toBeUndefined();
        reporterOfJest.onRunComplete();
        expect(reporterOfJest.getLastError()?.message).toContain('failUnder');
        const lenient = coverageReporter({ reports: { json } });
        lenient.onTestBegin();
        expect([lenient.onEnd(), lenient.getLastError()]).toEqual([undefined, undefined]);
      } finally {
        print.mockRestore();
        delete process.env.CUSTOS_COVERAGE_FOLDER;
        process.exitCode = undefined;
      }
    }));
});
