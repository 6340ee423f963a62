import { spawnSync } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Agent } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { startMock } from '../../../src/compose/mock.ts';
import { alice, startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { filesOf } from '../../../src/tools/init/templates.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { runCommand } from '../../support/run-custos.ts';

// Most requests here are answered by the mock, with examples.
pauseRecording();

let mock: Awaited<ReturnType<typeof startMock>>;
let sandbox: TestSandbox;
let agent: Agent;
beforeAll(async () => {
  mock = await startMock({ port: 0, logLevel: 'silent' });
  sandbox = await startSandbox({ clock: 'frozen' });
  agent = new Agent({ connect: { ca: [mock.caPem, sandbox.caPem] } });
});
afterAll(async () => {
  await agent.destroy();
  await mock.close();
  await sandbox.close();
});

interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

async function send({ method, url, headers, body }: Sent) {
  const { origin, pathname, search } = new URL(url);
  const answer = await agent.request({
    ...{ origin, path: pathname + search, method: method as 'GET', headers, body: body ?? null },
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, text };
}

/** The requests that the mock, which validates them, refuses. */
async function refused(requests: readonly Sent[]): Promise<string[]> {
  const found: string[] = [];
  for (const request of requests) {
    const { status, text } = await send(request);
    if (status >= 400) found.push(`${request.method} ${request.url}: ${status} ${text}`);
  }
  return found;
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** The only file of a template. */
function textOf(template: string): string {
  const [file] = filesOf(template);
  return file!.text;
}

interface PostmanItem {
  readonly name: string;
  readonly event?: readonly {
    readonly listen: string;
    readonly script: { readonly exec: readonly string[] };
  }[];
  readonly request: {
    readonly method: string;
    readonly auth?: { readonly type: string };
    readonly header: readonly { readonly key: string; readonly value: string }[];
    readonly url: { readonly raw: string };
    readonly body?: { readonly raw: string };
  };
}

interface PostmanCollection extends Pick<PostmanItem, 'event'> {
  readonly variable: readonly { readonly key: string; readonly value: string }[];
  readonly item: readonly { readonly item: readonly PostmanItem[] }[];
}

type AsyncFunction = (pm: object) => Promise<void>;
const AsyncFunction = (async () => undefined).constructor as new (...args: string[]) => AsyncFunction;

describe('the Postman collection', () => {
  const collection = JSON.parse(textOf('postman')) as PostmanCollection;
  const items = collection.item.flatMap(({ item }) => item);
  const variables = new Map(collection.variable.map(({ key, value }) => [key, value]));
  const resolve = (words: string): string =>
    words.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => resolve(variables.get(name) ?? ''));
  beforeEach(() => void variables.set('baseUrl', mock.baseUrl));

  const sentFor = ({ request }: PostmanItem, more: readonly { key: string; value: string }[] = []): Sent => ({
    method: request.method,
    url: resolve(request.url.raw),
    headers: {
      ...(request.auth?.type === 'noauth'
        ? {}
        : { authorization: basic(variables.get('appId')!, variables.get('appSecret')!) }),
      ...Object.fromEntries([...request.header, ...more].map(({ key, value }) => [key, resolve(value)])),
    },
    body: request.body === undefined ? undefined : resolve(request.body.raw),
  });
  const named = (name: string) =>
    items.find((item) => item.name === name || item.name.startsWith(`${name}: `))!;
  const scriptOf = ({ event = [] }: Pick<PostmanItem, 'event'>, listen: string): AsyncFunction => {
    const script = event.find((each) => each.listen === listen)!.script.exec.join('\n');
    return new AsyncFunction('pm', script);
  };

  test('the Postman collection has requests that fit the contract', async () => {
    expect(items.length).toBeGreaterThan(300);
    expect(await refused(items.map((item) => sentFor(item)))).toEqual([]);
  });

  test('the Postman collection has the same requests as the .http file', () => {
    const [head = '', ...blocks] = textOf('http').split(/^### /m);
    const values = new Map([...head.matchAll(/^@(\w+) = (.*)$/gm)].map(([, name, value]) => [name, value]));
    values.set('baseUrl', mock.baseUrl);
    const requests = blocks.map((block): Sent => {
      const filled = block.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => values.get(name) ?? '');
      const [lines = '', body] = filled.trimEnd().split('\n\n');
      const [, request = '', ...fields] = lines.split('\n').filter((line) => !line.startsWith('#'));
      const [method = '', url = ''] = request.split(' ');
      const headers = Object.fromEntries(
        fields
          .map((field) => field.split(': ') as [string, string])
          .map(([key, value]) => [key.toLowerCase(), value]),
      );
      const [, user = '', password = ''] = headers.authorization?.split(' ') ?? [];
      if (headers.authorization !== undefined) headers.authorization = basic(user, password);
      return { method, url, headers, body };
    });
    const inOrder = (sent: readonly Sent[]) =>
      sent
        .map((each) => ({ ...each, url: decodeURIComponent(each.url) }))
        .sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
    expect(inOrder(requests)).toEqual(inOrder(items.map((item) => sentFor(item))));
  });

  test('the Postman collection signs requests with the keys in its variable', async () => {
    variables.set('baseUrl', sandbox.baseUrl);
    variables.set('wallet_id', 'ext_wal_alice');
    const item = named('walletRpc: personal_sign');
    expect((await send(sentFor(item))).status).toBe(401);
    for (const [keys, status] of [
      ['', 401],
      [alice.privateKey, 200],
    ] as const) {
      variables.set('privateKeys', keys);
      const more: { key: string; value: string }[] = [];
      const { method, header, url, body } = item.request;
      await scriptOf(
        collection,
        'prerequest',
      )({
        variables: { get: (name: string) => variables.get(name), replaceIn: resolve },
        request: {
          ...{ method, url: { toString: () => url.raw }, body },
          headers: { all: () => header, upsert: (added: (typeof more)[number]) => void more.push(added) },
        },
      });
      expect((await send(sentFor(item, more))).status).toBe(status);
    }
  });

  test('the Postman collection keeps the ids of what it created for the requests that follow', async () => {
    variables.set('baseUrl', sandbox.baseUrl);
    const { status, text: created } = await send(sentFor(named('createWebhookEndpoint')));
    expect(status).toBe(200);
    await scriptOf(
      named('createWebhookEndpoint'),
      'test',
    )({
      response: { code: status, json: () => JSON.parse(created) },
      collectionVariables: { set: (name: string, value: string) => void variables.set(name, value) },
    });
    const found = await send(sentFor(named('getWebhookEndpoint')));
    expect(JSON.parse(found.text)).toMatchObject({ id: JSON.parse(created).id });
  });
});

describe('webhook endpoints', () => {
  test('of express verify what a sandbox sends, and handle each event once', async () => {
    const endpoint = await sandbox.call('createWebhookEndpoint', { body: { url: 'http://127.0.0.1:9/' } });
    vi.stubEnv('WEBHOOK_SECRET', endpoint.secret);
    vi.stubEnv('PORT', '0');
    const handled = vi.spyOn(console, 'log').mockReturnValue();
    const started = vi.spyOn(console, 'info').mockReturnValue();
    const { server } = await import('../../../templates/express/webhooks/express.mts');
    vi.unstubAllEnvs();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/custos`;
    try {
      await sandbox.call('updateWebhookEndpoint', { path: { endpoint_id: endpoint.id }, body: { url } });
      const wallet = await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
      await sandbox.call('archiveWallet', { path: { wallet_id: wallet.id } });
      await sandbox.settle();
      const { data } = await sandbox.call('listWebhookDeliveries', { path: { endpoint_id: endpoint.id } });
      expect(data.map(({ status }) => status)).toEqual(['delivered']);
      expect(handled.mock.calls).toEqual([['wallet.archived']]);
      const path = { endpoint_id: endpoint.id, delivery_id: data[0]!.id };
      await sandbox.call('replayWebhookDelivery', { path });
      await sandbox.settle();
      expect(handled).toHaveBeenCalledTimes(1);
      expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    } finally {
      expect(started).toHaveBeenCalledTimes(1);
      started.mockRestore();
      handled.mockRestore();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('of Next.js verify signatures of Standard Webhooks, and handle each event once', async () => {
    const secret = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
    const handled = vi.spyOn(console, 'log').mockReturnValue();
    vi.stubEnv('WEBHOOK_SECRET', secret);
    const { POST } = await import('../../../templates/next/app/api/webhooks/custos/route.ts');
    const body = JSON.stringify({ type: 'wallet.archived' });
    const now = new Date();
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('msg_1', now, body),
    };
    const post = (text: string) =>
      POST(new Request('https://shop.example/api/webhooks/custos', { method: 'POST', headers, body: text }));
    try {
      expect([await post(body), await post(body)].map(({ status }) => status)).toEqual([204, 204]);
      expect((await post(`${body} `)).status).toBe(401);
      expect(handled.mock.calls).toEqual([['wallet.archived']]);
    } finally {
      handled.mockRestore();
      vi.unstubAllEnvs();
    }
  });
});

test('the workflow has scripts that a shell can parse, and commands with flags that exist', async () => {
  const { jobs } = parse(textOf('github')) as { jobs: { test: { steps: { run?: string }[] } } };
  const scripts = jobs.test.steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
  for (const script of scripts) {
    expect(spawnSync('bash', ['-n'], { input: script })).toMatchObject({ status: 0 });
  }
  const all = scripts.join('\n').replaceAll('\\\n', ' ');
  for (const [, command = '', rest = ''] of all.matchAll(/npx custos (\w+) ([^|\n]*)/g)) {
    const { stdout } = await runCommand([command, '--help']);
    for (const [flag] of rest.split(' -- ')[0]!.matchAll(/--\w[\w-]*/g)) expect(stdout).toContain(flag);
  }
  expect([...all.matchAll(/npx custos/g)]).toHaveLength(2);
});
