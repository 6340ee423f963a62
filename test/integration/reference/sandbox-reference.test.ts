import { gunzipSync } from 'node:zlib';
import type { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

type Headers = Readonly<Record<string, string>>;

async function get(path: string, headers: Headers = {}, on: TestSandbox = sandbox) {
  const dispatcher: Agent = on.dispatcher;
  const answer = await dispatcher.request({ origin: on.baseUrl, path, method: 'GET', headers });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    bytes: Buffer.from(await answer.body.arrayBuffer()),
  };
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly example?: string;
}

describe('what the reference fills in', () => {
  test.each([
    ['/v1/wallets', 'get'],
    ['/v1/wallets/{wallet_id}', 'get'],
    ['/v1/apps/{app_id}', 'get'],
  ])('works as it is: %s', async (template, method) => {
    const document = (await sandbox.document()) as unknown as {
      paths: Record<string, Record<string, { parameters: Parameter[] }>>;
      components: { parameters: Record<string, Parameter> };
    };
    const parameters = document.paths[template]![method]!.parameters.map((each) =>
      each.$ref === undefined ? each : document.components.parameters[each.$ref.split('/').at(-1)!]!,
    );
    const filled = parameters.filter(({ example }) => example !== undefined);
    expect(filled.filter(({ required }) => required !== true)).toEqual([]);
    const path = filled.reduce((text, { name, example }) => text.replace(`{${name}}`, example!), template);
    const headers = Object.fromEntries(
      filled.filter((each) => each.in === 'header').map(({ name, example }) => [name, example!]),
    );
    const [, appId, secret] = /preauthorizeBasic\("appCredentials", "(.+)", "(.+)"\)/.exec(
      (await get('/docs/start.js')).bytes.toString(),
    )!;
    const authorization = `Basic ${Buffer.from(`${appId}:${secret}`).toString('base64')}`;
    expect((await get(path, { ...headers, authorization })).status).toBe(200);
  });

  test('contains no secret but the published one', async () => {
    await using other = await startSandbox({ appSecret: 'a-secret-of-our-own' });
    const { bytes } = await get('/docs/start.js', {}, other);
    expect(bytes.toString()).not.toContain('a-secret-of-our-own');
    expect(bytes.toString()).not.toContain('preauthorize');
  });
});

test('pages are compressed for clients that accept it', async () => {
  const plain = await get('/openapi.json');
  const small = await get('/openapi.json', { 'accept-encoding': 'br, gzip;q=0.8' });
  expect(small.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(gunzipSync(small.bytes).equals(plain.bytes)).toBe(true);
  expect(small.bytes.length).toBeLessThan(plain.bytes.length / 5);
  const refused = await get('/openapi.json', { 'accept-encoding': 'gzip;q=0' });
  expect(refused.headers['content-encoding']).toBeUndefined();
});

test('a script of a web page gets a 401 without a challenge, so that the browser asks for no password', async () => {
  const challenged = await get('/v1/wallets');
  expect(challenged).toMatchObject({
    status: 401,
    headers: { 'www-authenticate': expect.stringMatching(/^Basic/) },
  });
  const browser = { 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' };
  const { status, headers } = await get('/v1/wallets', browser);
  expect([status, headers['www-authenticate']]).toEqual([401, undefined]);
});
