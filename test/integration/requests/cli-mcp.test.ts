import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { verifyMessage } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { serveProtocol } from '../../../src/client/mcp/serve-protocol.ts';
import { sandboxTools } from '../../../src/client/mcp/tools.ts';
import { openSandboxClient, type SandboxClient } from '../../../src/client/sandbox-client.ts';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let sandboxClient: SandboxClient;
let client: ReturnType<typeof connect>;
beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => {
  sandboxClient = openSandboxClient({ url: sandbox.baseUrl, caFile: sandbox.caFile });
  client = connect(sandboxClient);
});
afterEach(async () => {
  await client.close();
  sandboxClient.close();
});

interface Response {
  readonly id: number | null;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A client that writes lines of JSON-RPC, as the specification shows them. */
function connect(served: SandboxClient) {
  const input = new PassThrough();
  const waiting = new Map<number | null, (response: Response) => void>();
  let lastId = 0;
  const serving = serveProtocol({
    input,
    write(line) {
      expect(line).not.toContain('\n');
      const response = JSON.parse(line) as Response;
      waiting.get(response.id)?.(response);
    },
    tools: sandboxTools(served),
    version: '0.1.0',
    instructions: 'A sandbox.',
  });
  const answerTo = (id: number | null) => new Promise<Response>((resolve) => waiting.set(id, resolve));
  const request = (method: string, params?: object): Promise<Response> => {
    lastId += 1;
    const answered = answerTo(lastId);
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params })}\n`);
    return answered;
  };
  return {
    request,
    answerTo,
    raw: (line: string) => void input.write(`${line}\n`),
    /** The content of a tool's result, and whether it failed. */
    async use(name: string, args: object = {}) {
      const { result, error } = await request('tools/call', { name, arguments: args });
      if (result === undefined) throw new Error(JSON.stringify(error));
      const [{ type, text }] = result.content as [{ type: string; text: string }];
      expect(type).toBe('text');
      return { isError: result.isError, content: JSON.parse(text) };
    },
    async close() {
      input.end();
      await serving;
    },
  };
}

describe('the protocol', () => {
  test('begins with an agreement on the version', async () => {
    const hello = { capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const { result } = await client.request('initialize', { protocolVersion: '2025-06-18', ...hello });
    expect(result).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'custos', version: '0.1.0' },
      instructions: 'A sandbox.',
    });
    client.raw('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    const older = await client.request('initialize', { protocolVersion: '2024-11-05', ...hello });
    expect(older.result?.protocolVersion).toBe('2024-11-05');
    const unknown = await client.request('initialize', { protocolVersion: '1999-01-01', ...hello });
    expect(unknown.result?.protocolVersion).toBe('2025-06-18');
    expect((await client.request('ping')).result).toEqual({});
  });

  test('describes each tool by a JSON Schema', async () => {
    const { result } = await client.request('tools/list');
    const tools = result?.tools as { name: string; inputSchema: { type: string; required: string[] } }[];
    expect(tools.map(({ name }) => name)).toContain('call_operation');
    for (const { inputSchema } of tools) expect(inputSchema.type).toBe('object');
  });

  test('refuses what is not JSON-RPC, unknown methods and tools, and wrong arguments', async () => {
    const broken = client.answerTo(null);
    client.raw('{broken');
    expect((await broken).error?.code).toBe(-32700);
    const empty = client.answerTo(null);
    client.raw('[]');
    expect((await empty).error?.code).toBe(-32600);
    expect((await client.request('resources/list')).error?.code).toBe(-32601);
    const tool = (name: string, args: unknown) => client.request('tools/call', { name, arguments: args });
    expect((await tool('shell', {})).error).toEqual({
      code: -32602,
      message: 'expected the name of a tool, got `shell`',
    });
    expect((await tool('explain_request', {})).error?.message).toBe('request_id: is required');
    expect((await tool('clock', { now: 1 })).error?.message).toContain('now: expected one of now_ms');
    expect((await tool('clock', { frozen: 'no' })).error?.message).toContain('a value of type boolean');
    expect((await tool('list_events', { type: [1] })).error?.message).toContain('a list of values');
    expect((await tool('clock', [])).error?.message).toBe('expected an object');
  });
});

describe('the tools', () => {
  test('find an operation, show how it is called, and call it, signed', async () => {
    const { content: found } = await client.use('search_contract', { query: 'wallet rpc sign', limit: 3 });
    expect(found).toHaveLength(3);
    expect(found[0]).toMatchObject({ operation: 'walletRpc', path: '/v1/wallets/{wallet_id}/rpc' });
    const { content: described } = await client.use('describe_operation', { operation: 'walletRpc' });
    expect(described.parameters).toContainEqual(expect.objectContaining({ name: 'wallet_id', in: 'path' }));
    expect(described.body_examples[0]).toMatchObject({ method: expect.any(String) });

    const { isError, content } = await client.use('call_operation', {
      operation: 'walletRpc',
      path_parameters: { wallet_id: 'ext_wal_alice' },
      body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
      ...{ sign_as: ['alice'], expires_in_ms: 60_000, idempotency_key: 'mcp' },
    });
    expect(isError).toBe(false);
    const { body: wallet } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    const address = wallet.address as `0x${string}`;
    const { signature } = content.body.data;
    expect(await verifyMessage({ address, message: 'Hello', signature })).toBe(true);
  });

  test('explain a refusal, and list requests and events', async () => {
    const refused = await client.use('call_operation', {
      operation: 'createWallet',
      body: { chain_tipe: 'x' },
    });
    expect(refused).toMatchObject({ isError: true, content: { status: 400 } });
    const { content: why } = await client.use('explain_request', { request_id: refused.content.request_id });
    expect(why.body.why).toMatchObject({ kind: 'validation', hint: refused.content.body.data.hint });
    const { content: requests } = await client.use('list_requests', {
      operation: ['createWallet'],
      status: '4xx',
    });
    expect(requests.body.data.map(({ id }: { id: string }) => id)).toEqual([refused.content.request_id]);
    await client.use('call_operation', { operation: 'triggerEvent', body: { type: 'wallet.archived' } });
    const { content: events } = await client.use('list_events', { type: ['wallet.archived'] });
    expect(events.body.data).toHaveLength(1);
  });

  test('read and move the clock, and explain a policy', async () => {
    const before = (await client.use('clock')).content.body.now_ms;
    expect((await client.use('clock', { advance_ms: 5 })).content.body.now_ms).toBe(before + 5);
    const { content } = await client.use('explain_policy', {
      policy: { chain_type: 'ethereum', rules: [] },
      request: { method: 'personal_sign', params: { message: 'Hi', encoding: 'utf-8' } },
    });
    expect(content.body.decision).toBe('denied');
  });

  test('save a snapshot and return to it', async () => {
    expect((await client.use('snapshot', { action: 'save', name: 'before' })).isError).toBe(false);
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const find = { operation: 'getWallet', path_parameters: { wallet_id: wallet.id } };
    expect((await client.use('call_operation', find)).isError).toBe(false);
    expect((await client.use('snapshot', { action: 'load', name: 'before' })).isError).toBe(false);
    expect((await client.use('call_operation', find)).content.status).toBe(404);
    const { content } = await client.use('snapshot', { action: 'list' });
    expect(content.body.data).toMatchObject([{ name: 'before' }]);
    expect((await client.use('snapshot', { action: 'load' })).content.error).toContain('expected name');
  });

  test.each([
    [{ operation: 'walletRpcc' }, 'did you mean `walletRpc`'],
    [{ operation: 'getWallet' }, 'path_parameters: expected wallet_id'],
    [{ operation: 'listWallets', sign_as: ['alice'] }, 'does not accept authorization signatures'],
    [
      { operation: 'walletRpc', path_parameters: { wallet_id: 'x' }, sign_as: ['eve'] },
      'expected alice, bob, carol',
    ],
  ])('report the mistake in %j', async (args, message) => {
    const { isError, content } = await client.use('call_operation', args);
    expect(content.error).toContain(message);
    expect(isError).toBe(true);
  });

  test('call nothing but a sandbox', async () => {
    const asked: (string | undefined)[] = [];
    const production = createServer(({ url }, response) => {
      asked.push(url);
      response.writeHead(401).end('{"error":"Missing or invalid token"}');
    });
    await new Promise<void>((resolve) => production.listen(0, '127.0.0.1', resolve));
    const { port } = production.address() as { port: number };
    const other = openSandboxClient({ url: `http://127.0.0.1:${port}` });
    const theirs = connect(other);
    const { isError, content } = await theirs.use('call_operation', { operation: 'listWallets' });
    await theirs.close();
    other.close();
    await new Promise((resolve) => production.close(resolve));
    expect(isError).toBe(true);
    expect(content.error).toContain('is it a `custos sandbox`?');
    expect(asked).toEqual(['/_sandbox/clock']);
  });
});
