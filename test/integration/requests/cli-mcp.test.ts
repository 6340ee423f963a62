import { createServer } from 'node:http';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { EmptyResultSchema, InitializeResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { verifyMessage } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openSandboxClient, type SandboxClient } from '../../../src/tools/client/sandbox-client.ts';
import { serveTools } from '../../../src/tools/mcp/serve-tools.ts';
import { sandboxTools } from '../../../src/tools/mcp/tools.ts';
import { call } from '../../support/call.ts';
import { startCustos } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let sandboxClient: SandboxClient;
let client: Awaited<ReturnType<typeof connect>>;
beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  sandboxClient = openSandboxClient({ url: sandbox.baseUrl, caFile: sandbox.caFile });
  client = await connect(sandboxClient);
});
afterEach(async () => {
  client.raw.end();
  await client.serving;
  sandboxClient.close();
});

/** The SDK's own client, connected to the tools. */
async function connect(served: SandboxClient) {
  const [toServer, toClient] = [new PassThrough(), new PassThrough()];
  const errors: string[] = [];
  const serving = serveTools({
    input: toServer,
    output: toClient,
    tools: sandboxTools(served),
    version: '0.1.0',
    instructions: 'A sandbox.',
    onError: ({ message }) => void errors.push(message),
  });
  return { ...(await connectTo(toClient, toServer)), raw: toServer, serving, errors };
}

/** The SDK's transports for standard input and output differ only in who starts whom. */
async function connectTo(received: Readable, sent: Writable) {
  const mcp = new Client({ name: 'test', version: '1' });
  await mcp.connect(new StdioServerTransport(received, sent));
  return {
    mcp,
    /** The content of a tool's result, and whether it failed. */
    async use(name: string, args: Record<string, unknown> = {}) {
      const { content, isError } = await mcp.callTool({ name, arguments: args });
      const [{ type, text }] = content as [{ type: string; text: string }];
      expect(type).toBe('text');
      return { isError, content: JSON.parse(text) };
    },
  };
}

describe('the protocol', () => {
  test('the protocol begins with an agreement on the version', async () => {
    expect(client.mcp.getServerVersion()).toEqual({ name: 'custos', version: '0.1.0' });
    expect(client.mcp.getServerCapabilities()).toEqual({ tools: {} });
    expect(client.mcp.getInstructions()).toBe('A sandbox.');
    const agreed = async (protocolVersion: string): Promise<string> => {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
      const { protocolVersion: version } = await client.mcp.request(
        { method: 'initialize', params },
        InitializeResultSchema,
      );
      return version;
    };
    expect(await agreed('2025-11-25')).toBe('2025-11-25');
    expect(await agreed('2024-11-05')).toBe('2024-11-05');
    expect(await agreed('1999-01-01')).toBe('2025-11-25');
    expect(await client.mcp.ping()).toEqual({});
  });

  test('describes each tool by a JSON Schema', async () => {
    const { tools } = await client.mcp.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['search_contract', 'describe_operation', 'call_operation', 'explain_request', 'list_requests'],
      ...['list_events', 'clock', 'snapshot', 'explain_policy'],
    ]);
    for (const { inputSchema, annotations } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(annotations).toMatchObject({ openWorldHint: false, readOnlyHint: expect.any(Boolean) });
    }
  });

  test('the protocol refuses unknown methods and tools', async () => {
    await expect(client.mcp.request({ method: 'resources/list' }, EmptyResultSchema)).rejects.toMatchObject({
      code: -32601,
    });
    await expect(client.use('shell')).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('got `shell`'),
    });
  });

  // Protocol 2025-11-25, "Error Handling" of tools: invalid input is a result, so that the model can correct itself.
  test.each([
    ['explain_request', {}, "arguments: must have required property 'request_id'"],
    ['clock', { now: 1 }, 'arguments: must NOT have additional properties: now'],
    ['clock', { frozen: 'no' }, 'frozen: must be boolean'],
    ['clock', { now_ms: 1.5, frozen: 1 }, 'now_ms: must be integer; frozen: must be boolean'],
    ['list_events', { type: [1] }, 'type/0: must be string'],
    ['snapshot', { action: 'drop' }, 'action: must be equal to one of the allowed values: list, save, load'],
  ])('%s with %j is answered by a result that names the fault', async (name, args, error) => {
    expect(await client.use(name, args)).toEqual({ isError: true, content: { error } });
  });

  test('goes on after a line that is not a message', async () => {
    client.raw.write('{broken\n[]\n');
    expect((await client.use('clock')).isError).toBe(false);
    expect(client.errors).toHaveLength(2);
  });

  test('the protocol answers every call before it ends with its input', async () => {
    const answered = client.use('list_requests', { after: 'now', wait_ms: 300 });
    client.raw.end();
    expect((await answered).isError).toBe(false);
    await client.serving;
  });

  test('the protocol is spoken by the command on its standard input and output', async () => {
    const place = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
    const command = await startCustos(['mcp', ...place]);
    const { stdout, stdin } = command.process;
    const { mcp, use } = await connectTo(stdout!, stdin!);
    expect(mcp.getInstructions()).toContain('search_contract');
    expect((await use('clock')).content.status).toBe(200);
    stdin!.end();
    expect(await command.ended()).toMatchObject({ code: 0, stderr: '' });
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
    const theirs = await connect(other);
    const { isError, content } = await theirs.use('call_operation', { operation: 'listWallets' });
    theirs.raw.end();
    await theirs.serving;
    other.close();
    await new Promise((resolve) => production.close(resolve));
    expect(isError).toBe(true);
    expect(content.error).toContain('is it a `custos sandbox`?');
    expect(asked).toEqual(['/_sandbox/clock']);
  });
});
