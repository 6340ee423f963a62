import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, requireLocalCaller } from '../../../src/server/origins.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const token = 'the-token-of-this-test';
const names = { host: '0.0.0.0', publicUrls: ['https://localhost:4010'] };

/** A caller in another container, as a published port shows it. */
const caller = (headers: Caller['headers']): Caller => ({
  remoteAddress: '172.17.0.1',
  headers: { host: 'localhost:4010', ...headers },
});

const bearer = { authorization: `Bearer ${token}` };

describe('a caller on another machine', () => {
  const require = requireLocalCaller(names, token);
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

  test.each([
    ['sends the token', bearer],
    ['sends it as the password', basic(`anyone:${token}`)],
    ['sends it under another name of the server', { ...bearer, host: 'custos:4010' }],
  ])('a caller on another machine is admitted if it %s', (_, headers) => {
    expect(() => require(caller(headers))).not.toThrow();
  });

  test.each([
    ['sends no token', {}],
    ['sends another token', { authorization: `Bearer ${token}x` }],
    ['sends the token as the user name', basic(`${token}:`)],
    ['sends an unknown scheme', { authorization: `Digest ${token}` }],
  ])('a caller on another machine is asked for the token if it %s', (_, headers) => {
    expect(() => require(caller(headers))).toThrow(/control token/);
  });

  test('a caller on another machine is not admitted if it is a page of another site, with the token of its browser', () => {
    const page = caller({ ...basic(`me:${token}`), origin: 'https://evil.example' });
    expect(() => require(page)).toThrow('Not found');
  });

  test('a caller on another machine finds nothing where there is no token', () => {
    expect(() => requireLocalCaller(names)(caller(bearer))).toThrow('Not found');
  });
});

const address = Object.values(networkInterfaces())
  .flat()
  .find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;

describe.skipIf(address === undefined)('through an address of this machine that is not loopback', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox({
      ...{ host: '0.0.0.0', controlToken: token },
      publicUrls: [`https://${address}`],
    });
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());
  const get = async (path: string, headers = {}) => {
    const { port } = new URL(sandbox.baseUrl);
    const origin = `https://${address}:${port}`;
    return sandbox.dispatcher.request({ origin, path, method: 'GET', headers });
  };

  test.each(['/_sandbox/clock', '/'])(
    'through an address of this machine that is not loopback: %s needs the token',
    async (path) => {
      const refused = await get(path);
      expect(refused.statusCode).toBe(401);
      expect(refused.headers['www-authenticate']).toMatch(/^Basic /);
      expect(await refused.body.text()).toContain('control token');
      expect((await get(path, bearer)).statusCode).toBe(200);
    },
  );

  test('the certificate authority is served to everyone', async () => {
    const { statusCode, body } = await get('/ca.pem');
    expect({ statusCode, pem: await body.text() }).toEqual({ statusCode: 200, pem: sandbox.caPem });
  });
});

test('a sandbox that other machines can reach draws a token, one on loopback has none', async () => {
  await using exposed = await startSandbox({ host: '0.0.0.0' });
  await using local = await startSandbox();
  expect(exposed.controlToken).toMatch(/^[\w-]{32}$/);
  expect(local.controlToken).toBeUndefined();
});
