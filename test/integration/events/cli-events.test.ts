import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Webhook as StandardVerifier } from 'standardwebhooks';
import { Webhook as SvixVerifier } from 'svix';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import type { SandboxEvent } from '../../../src/sandbox/generated/schemas.ts';
import { type Received, startHook } from '../../support/hook.ts';
import {
  type Finished,
  runCommand,
  type ServingCustos,
  type StartedCustos,
  serveCustos,
  startCustos,
  temporaryFolder,
  waitFor,
} from '../../support/run-custos.ts';

const walletId = 'wkzbbffw8n3xqrmc9s5gzjuq';
const knownSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

let sandbox: ServingCustos;

beforeAll(async () => {
  sandbox = await serveCustos(['sandbox', '--prefix', 'acme']);
});
afterAll(() => sandbox.stop());
beforeEach(() => sandbox.call('POST', '/_sandbox/reset'));

const at = (custos: ServingCustos) => ['--ready-file', custos.readyFile];

function custos(...args: string[]): Promise<Finished> {
  return runCommand([...args, ...at(sandbox)]);
}

/** The members of an event that stay the same while it is delivered. */
function withoutDeliveries({ deliveries: _, ...event }: SandboxEvent): object {
  return event;
}

async function trigger(...args: string[]): Promise<SandboxEvent> {
  const { code, stdout, stderr } = await custos('trigger', ...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** Starts `custos listen` and waits until it receives all events. */
async function startListening(...args: string[]): Promise<StartedCustos> {
  const listening = await startCustos(['listen', ...args]);
  await waitFor(() => listening.output().stdout.includes('whsec_') || listening.process.exitCode !== null);
  return listening;
}

/** The complete lines that `custos listen --json` has printed. */
function printed(listening: StartedCustos): Record<string, unknown>[] {
  const { stdout } = listening.output();
  const lines = stdout.slice(0, stdout.lastIndexOf('\n') + 1).split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** Verifies with two independent libraries; each gets only its own headers. */
function verify(secret: string, { headers, text }: Pick<Received, 'headers' | 'text'>): void {
  const only = (prefix: string) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix))) as Record<
      string,
      string
    >;
  expect(new StandardVerifier(secret).verify(text, only('webhook-'))).toEqual(JSON.parse(text));
  expect(new SvixVerifier(secret).verify(text, only('svix-'))).toEqual(JSON.parse(text));
}

describe('custos listen', () => {
  test('forwards events, signed, in order and branded', async () => {
    await using hook = await startHook();
    const listening = await startListening('--forward-to', hook.url, ...at(sandbox));
    const secret = /Secret (\S+)/.exec(listening.output().stdout)?.[1] ?? '';
    const { body: user } = await sandbox.call<{ id: string }>('POST', '/v1/users', {
      linked_accounts: [{ type: 'email', address: 'dana@example.com' }],
    });
    const { body: wallet } = await sandbox.call<{ id: string; address: string }>('POST', '/v1/wallets', {
      chain_type: 'ethereum',
    });
    await sandbox.call('POST', `/v1/wallets/${wallet.id}/archive`);
    const made = await trigger('wallet.restored', '--set', `wallet_id=${wallet.id}`);
    await waitFor(() => hook.received.length === 3);

    expect(user.id).toMatch(/^did:acme:/);
    const [created, archived, restored] = hook.received;
    expect(hook.received.map(({ method, path, body }) => [method, path, body.type])).toEqual([
      ['POST', '/hook', 'user.created'],
      ['POST', '/hook', 'wallet.archived'],
      ['POST', '/hook', 'wallet.restored'],
    ]);
    expect(created?.body).toMatchObject({ user: { id: user.id } });
    expect(archived?.body).toMatchObject({ wallet_id: wallet.id, wallet_address: wallet.address });
    expect(restored?.body).toEqual(made.payload);
    expect(restored?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': made.id,
      'svix-id': made.id,
    });
    for (const received of hook.received) verify(secret, received);

    await waitFor(() => listening.output().stdout.includes(made.id));
    const { code, stdout, stderr } = await listening.stop('SIGINT');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trim().split('\n');
    expect(lines.slice(0, 3)).toEqual([
      `Listening to ${sandbox.ready.base_url}, forwarding to ${hook.url}`,
      `Secret ${secret}`,
      '',
    ]);
    expect(
      lines.slice(3).map((line) =>
        line
          .replace(/\d+ ms$/, 'N ms')
          .split('  ')
          .slice(1),
      ),
    ).toEqual([
      ['user.created', created?.headers['webhook-id'], '204 in N ms'],
      ['wallet.archived', archived?.headers['webhook-id'], '204 in N ms'],
      ['wallet.restored', made.id, '204 in N ms'],
    ]);
  });

  test('--json prints the signed event and its outcome, including refusals and redirects', async () => {
    const answers = [200, 302, 500];
    await using hook = await startHook(() => answers.shift() ?? 200);
    const flags = ['--json', '--secret', knownSecret, '--forward-to', hook.url];
    const listening = await startListening(...flags, ...at(sandbox));
    const made = [
      await trigger('mfa.enabled'),
      await trigger('mfa.disabled'),
      await trigger('wallet.recovered'),
    ];
    await waitFor(() => printed(listening).length === 4);
    const [start, ...events] = printed(listening);
    expect(start).toEqual({
      msg: 'listening',
      url: sandbox.ready.base_url,
      forward_to: hook.url,
      secret: knownSecret,
    });
    const timeSeconds = expect.stringMatching(/^\d{10}$/);
    const signature = expect.stringMatching(/^v1,/);
    expect(events).toEqual(
      made.map((event, place) => ({
        msg: 'event',
        ...event,
        deliveries: expect.toBeOneOf([null, []]),
        headers: {
          'webhook-id': event.id,
          'webhook-timestamp': timeSeconds,
          'webhook-signature': signature,
          'svix-id': event.id,
          'svix-timestamp': timeSeconds,
          'svix-signature': signature,
        },
        forward: { status: [200, 302, 500][place], duration_ms: expect.any(Number) },
      })),
    );
    for (const received of hook.received) verify(knownSecret, received);
    // The redirect was not followed, the failure not retried.
    expect(hook.received.map(({ path }) => path)).toEqual(['/hook', '/hook', '/hook']);
    await listening.stop();
  });

  test('only the requested types, and only printed without an endpoint', async () => {
    const listening = await startListening('--events', 'wallet.*,user.created', '--json', ...at(sandbox));
    for (const type of ['mfa.enabled', 'wallet.archived', 'user.deleted', 'user.created'])
      await trigger(type);
    await waitFor(() => printed(listening).length === 3);
    const [, ...events] = printed(listening);
    expect(events.map((event) => [event.type, 'forward' in event])).toEqual([
      ['wallet.archived', false],
      ['user.created', false],
    ]);
    await listening.stop();
  });

  test('--after start begins with past events', async () => {
    const made = await trigger('wallet.archived');
    const listening = await startListening('--after', 'start', '--json', ...at(sandbox));
    await waitFor(() => printed(listening).length === 2);
    expect(printed(listening)[1]).toMatchObject(withoutDeliveries(made));
    await listening.stop();
  });

  test('an unreachable or recovering endpoint does not affect the next event', async () => {
    const listening = await startListening('--forward-to', 'http://127.0.0.1:9/hook', ...at(sandbox));
    const made = [await trigger('wallet.archived'), await trigger('wallet.restored')];
    await waitFor(() => listening.output().stdout.includes(made[1]?.id ?? ''));
    const lines = (await listening.stop()).stdout.trim().split('\n').slice(3);
    expect(lines.map((line) => line.split('  ').slice(2))).toEqual([
      [made[0]?.id, 'not forwarded: connection refused'],
      [made[1]?.id, 'not forwarded: connection refused'],
    ]);
  });

  test('continues after a reset with new events', async () => {
    await using hook = await startHook();
    const listening = await startListening('--forward-to', hook.url, ...at(sandbox));
    await trigger('wallet.archived');
    await waitFor(() => hook.received.length === 1);
    await sandbox.call('POST', '/_sandbox/reset');
    const after = await trigger('wallet.restored');
    await waitFor(() => hook.received.length === 2);
    expect(hook.received[1]?.headers['webhook-id']).toBe(after.id);
    expect((await listening.stop()).stderr).toBe(
      'custos: the sandbox was reset; the following events occurred since then\n',
    );
  });

  test('continues after restarts: with data from its position, without from the beginning', async () => {
    await using hook = await startHook();
    const [folder, readyFile] = [temporaryFolder(), join(temporaryFolder(), 'ready.json')];
    const start = async (...args: string[]): Promise<StartedCustos> => {
      const server = await startCustos(['sandbox', '--port', '0', '--ready-file', readyFile, ...args]);
      await waitFor(() => server.output().stdout.includes('Ctrl-C'));
      return server;
    };
    const triggerHere = (type: string) => runCommand(['trigger', type, '--ready-file', readyFile]);

    const first = await start('--data', folder);
    const listening = await startListening('--forward-to', hook.url, '--ready-file', readyFile);
    await triggerHere('wallet.archived');
    await waitFor(() => hook.received.length === 1);
    // Its ready file remains, because it was killed.
    await first.stop('SIGKILL');
    await waitFor(() => listening.output().stderr.includes('waiting to reconnect'));
    const second = await start('--data', folder);
    await triggerHere('wallet.restored');
    await waitFor(() => hook.received.length === 2);
    await second.stop();
    const third = await start();
    await triggerHere('wallet.recovered');
    await waitFor(() => hook.received.length === 3);
    expect(hook.received.map(({ body }) => body.type)).toEqual([
      'wallet.archived',
      'wallet.restored',
      'wallet.recovered',
    ]);
    const { code, stderr } = await listening.stop();
    expect(code).toBe(0);
    expect(stderr.match(/reconnected to the sandbox/g)).toHaveLength(2);
    expect(stderr.match(/the sandbox was reset/g)).toHaveLength(1);
    await third.stop();
  });

  test.each([
    [['--secret', 'whsec_AAAA'], '--secret: expected a secret of 24 to 64 bytes, got 3 bytes'],
    [['--secret', '@/nowhere'], '--secret: `/nowhere` cannot be read'],
    [
      ['--forward-to', 'localhost:3000'],
      '--forward-to: expected a URL such as `http://127.0.0.1:3000/hook`, got `localhost:3000`',
    ],
  ])('custos listen: %j is refused', async (flags, fault) => {
    expect(await custos('listen', ...flags)).toEqual({
      code: 2,
      stdout: '',
      stderr: `custos: invalid option:\n  - ${fault}\n`,
    });
  });

  test('an event that is not in the contract is refused immediately', async () => {
    const { code, stderr } = await custos('listen', '--events', 'mfa.enabeld');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'custos: the sandbox refused the request:\n  - type: the contract has no event `mfa.enabeld`: did you mean `mfa.enabled`?\n',
    });
  });
});

describe('custos trigger', () => {
  test('puts values into the example: as text where it has text, otherwise or on request as JSON', async () => {
    const plain = await trigger('wallet.funds_deposited');
    const made = await trigger(
      'wallet.funds_deposited',
      ...['--set', `wallet_id=${walletId}`],
      ...['--set', 'amount=5'],
      ...['--set', 'block.number=7'],
      ...['--set', '/transaction_fee:="9"'],
    );
    const { block } = plain.payload as unknown as { block: object };
    expect(made).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-z]{24}$/),
      app_id: acmeApp.id,
      type: 'wallet.funds_deposited',
      created_at_ms: expect.any(Number),
      subject: { type: 'wallet', id: walletId, name: null },
      ...{ wallet: null, user: null, request_id: null, deliveries: null },
      payload: {
        ...plain.payload,
        wallet_id: walletId,
        amount: '5',
        block: { ...block, number: 7 },
        transaction_fee: '9',
      },
    });
  });

  test('custos trigger prints one line for people', async () => {
    const { code, stdout } = await custos('trigger', 'mfa.enabled');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d{4}-\S+Z {2}mfa\.enabled {2}msg_[0-9a-z]{24}\n$/),
    });
  });

  test.each([
    [
      ['wallet.archived', '--set', 'archived_at=soon'],
      'event `wallet.archived` /archived_at: must be a number',
    ],
    [['wallet.archived', '--set', 'colour=red'], 'event `wallet.archived` /colour: unknown property'],
    [
      ['wallet.archived', '--set', 'type=wallet.restored'],
      'event `wallet.archived` /type: must be wallet.archived',
    ],
    [['mfa.enabeld'], '/type: the contract has no event `mfa.enabeld`: did you mean `mfa.enabled`?'],
  ])('%j is refused with the pointer', async (args, fault) => {
    expect(await custos('trigger', ...args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `custos: the sandbox refused the request:\n  - ${fault}\n`,
    });
  });

  test.each([
    ['wallet_id', '--set: expected path=value or path:=json, got `wallet_id`'],
    ['wallet_id:={', '--set wallet_id: expected JSON, got `{`: '],
  ])('--set %s is refused', async (assignment, fault) => {
    const { code, stderr } = await custos('trigger', 'wallet.archived', '--set', assignment);
    expect(code).toBe(2);
    expect(stderr).toContain(fault);
  });

  test('an unknown app', async () => {
    const { code, stderr } = await custos('trigger', 'wallet.archived', '--app', 'unknown');
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'custos: App not found\n' });
  });
});

describe('custos events', () => {
  test('wait: an event from before the command counts', async () => {
    const made = await trigger('wallet.archived', '--set', `wallet_id=${walletId}`);
    const { code, stdout } = await custos(
      ...[
        'events',
        'wait',
        'wallet.archived',
        '--timeout',
        '5s',
        '--where',
        `wallet_id=${walletId}`,
        '--json',
      ],
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject(withoutDeliveries(made));
  });

  test('wait: a faucet deposit is recorded before the faucet responds', async () => {
    const { body: wallet } = await sandbox.call<{ id: string; address: string }>('POST', '/v1/wallets', {
      chain_type: 'ethereum',
    });
    const { body: given } = await sandbox.call<{ transaction_hash: string }>('POST', '/_sandbox/faucet', {
      ...{ chain: 'base', address: wallet.address, amount: '1' },
    });
    const asked = ['wallet.funds_deposited', '--timeout', '0ms', '--where', `wallet_id=${wallet.id}`];
    const { code, stdout } = await custos('events', 'wait', ...asked, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      type: 'wallet.funds_deposited',
      payload: { transaction_hash: given.transaction_hash, amount: '1000000000000000000' },
    });
  });

  test('wait: an event within the timeout, from now on', async () => {
    await trigger('wallet.archived');
    const waiting = await startCustos([
      'events',
      'wait',
      'wallet.*',
      '--timeout',
      '30s',
      '--after',
      'now',
      '--json',
      ...at(sandbox),
    ]);
    await waitFor(() => waiting.output().stderr.includes('waiting for new events'));
    await trigger('mfa.enabled');
    const made = await trigger('wallet.restored');
    const { code, stdout } = await waiting.ended();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject(withoutDeliveries(made));
  });

  test('wait: no event, or none that matches', async () => {
    const made = await trigger('wallet.archived', '--set', 'archived_at=1763719500');
    const waitFor300Ms = (...args: string[]) =>
      custos('events', 'wait', 'wallet.archived', '--timeout', '300ms', ...args);
    for (const args of [
      ['--after', made.id],
      ['--where', 'archived_at=5'],
      ['--app', 'unknown'],
    ]) {
      expect(await waitFor300Ms(...args)).toEqual({
        code: 1,
        stdout: '',
        stderr: 'custos: waiting\ncustos: expected an event `wallet.archived` within 300ms, got none\n',
      });
    }
    expect((await waitFor300Ms('--where', 'archived_at=1763719500')).code).toBe(0);
  });

  test('wait: invalid conditions', async () => {
    expect(await custos('events', 'wait', 'mfa.enabled', '--timeout', 'soon')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'custos: invalid option:\n  - --timeout: expected a duration such as 500ms, 5s or 2m, got `soon`\n',
    });
    const unknown = await custos('events', 'wait', 'mfa.enabled', '--after', 'msg_nothing');
    expect({ code: unknown.code, stderr: unknown.stderr }).toEqual({
      code: 1,
      stderr: 'custos: Event not found\n',
    });
  });

  test('replay: the same payload under a new id, also to listeners', async () => {
    await using hook = await startHook();
    const made = await trigger('wallet.archived', '--set', `wallet_id=${walletId}`);
    const flags = ['--forward-to', hook.url, '--secret', knownSecret];
    const listening = await startListening(...flags, ...at(sandbox));
    const { code, stdout } = await custos('events', 'replay', made.id, '--json');
    expect(code).toBe(0);
    const again = JSON.parse(stdout) as SandboxEvent;
    expect(again).toEqual({
      ...made,
      id: expect.stringMatching(/^msg_/),
      created_at_ms: expect.any(Number),
    });
    expect(again.id).not.toBe(made.id);
    await waitFor(() => hook.received.length === 1);
    expect(hook.received[0]?.headers['webhook-id']).toBe(again.id);
    expect(hook.received[0]?.body).toEqual(made.payload);
    await listening.stop();
    const absent = await custos('events', 'replay', 'msg_nothing');
    expect({ code: absent.code, stderr: absent.stderr }).toEqual({
      code: 1,
      stderr: 'custos: Event not found\n',
    });
  });

  test('replay --to: the same id, a new signature; a refusal of the endpoint is the exit code', async () => {
    await using hook = await startHook();
    const made = await trigger('wallet.archived', '--set', `wallet_id=${walletId}`);
    const replay = (...flags: string[]) => custos('events', 'replay', made.id, ...flags);
    const { code, stdout, stderr } = await replay('--to', hook.url, '--secret', knownSecret);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(made.id);
    expect(hook.received.map(({ headers, body }) => [headers['webhook-id'], body])).toEqual([
      [made.id, made.payload],
    ]);
    verify(knownSecret, hook.received[0]!);
    expect((await custos('events', 'list', '--json')).stdout.trim().split('\n')).toHaveLength(1);

    const refused = await replay('--to', 'http://127.0.0.1:9/hook');
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 1,
      stderr: 'custos: http://127.0.0.1:9/hook: not forwarded: connection refused\n',
    });
    expect((await replay('--secret', knownSecret)).code).toBe(2);
    const absent = await custos('events', 'replay', 'msg_nothing', '--to', hook.url);
    expect(absent.stderr).toBe('custos: Event not found\n');
  });

  test('list: all events over several pages, or the matching ones', async () => {
    const made: SandboxEvent[] = [];
    for (let count = 0; count < 105; count += 1) {
      const type = count % 10 === 0 ? 'mfa.enabled' : 'wallet.archived';
      const { body } = await sandbox.call<SandboxEvent>('POST', '/_sandbox/events', { type });
      made.push(body);
    }
    const lines = ({ stdout }: Finished) =>
      stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as SandboxEvent).id);
    const ids = made.map(({ id }) => id);
    expect(lines(await custos('events', 'list', '--json'))).toEqual(ids);
    expect(
      lines(await custos('events', 'list', '--json', '--events', 'mfa.*', '--after', ids[0] ?? '')),
    ).toEqual(made.filter(({ type }, place) => type === 'mfa.enabled' && place > 0).map(({ id }) => id));
  });
});

describe('finding the sandbox', () => {
  test('not running, not trusted, another server', async () => {
    const list = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(['events', 'list', ...args]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      return stderr;
    };
    const elsewhere = await list('--url', 'https://127.0.0.1:9');
    expect(elsewhere).toContain(
      'custos: no sandbox responds at https://127.0.0.1:9; select a running one with --url:',
    );
    expect(elsewhere).toContain(sandbox.ready.base_url);
    expect(await list('--ready-file', '/nowhere/ready.json')).toBe(
      'custos: no sandbox is ready: `/nowhere/ready.json` does not exist\n',
    );
    const folder = temporaryFolder();
    expect(await list('--url', sandbox.ready.base_url, '--data', folder)).toMatch(
      /^custos: the certificate of https:\/\/127\.0\.0\.1:\d+ is not trusted \(.+\); pass the sandbox's authority with --ca-file, or its folder with --data\n$/,
    );
    writeFileSync(join(folder, 'ready.json'), '{"base_url":5}');
    expect(await list('--ready-file', join(folder, 'ready.json'))).toMatch(
      /^custos: expected a ready file, got `.+`\n$/,
    );

    const stranger = createServer((_request, response) => void response.end('hello'));
    await once(stranger.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    expect(await list('--url', url)).toMatch(/responds, but is not a Custos sandbox/);
    expect(await list('--url', url.replace('http:', 'https:'))).toMatch(/does not support TLS/);
    stranger.close();
    await using mock = await serveCustos(['mock']);
    expect(await list(...at(mock))).toMatch(/has no control plane for this; is it a `custos sandbox`\?\n$/);
  });

  test('by its address, with the certificate where it is kept', async () => {
    const made = await trigger('mfa.enabled');
    const byUrl = await runCommand(['events', 'list', '--json', '--url', sandbox.ready.base_url]);
    expect(JSON.parse(byUrl.stdout)).toMatchObject(withoutDeliveries(made));
    const folder = temporaryFolder();
    await using kept = await serveCustos(['sandbox', '--data', folder]);
    const byFolder = await runCommand(['events', 'list', '--url', kept.ready.base_url, '--data', folder]);
    expect(byFolder).toEqual({ code: 0, stdout: '', stderr: '' });
    await using plain = await serveCustos(['sandbox', '--plain-http']);
    const overHttp = await runCommand([
      'events',
      'list',
      '--url',
      plain.ready.base_url.replace('https:', 'http:'),
    ]);
    expect(overHttp).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});
