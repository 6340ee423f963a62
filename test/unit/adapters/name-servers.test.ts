import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nameServerLookup } from '../../../src/adapters/webhook-http.ts';

const records: Record<string, { readonly 1?: number[]; readonly 28?: number[] }> = {
  'four.acme.example': { 1: [192, 0, 2, 7] },
  'six.acme.example': { 28: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9] },
  'both.acme.example': {
    1: [192, 0, 2, 8],
    28: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8],
  },
};

/** The responses of a name server (RFC 1035 §4); some names get none. */
function answer(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const name = labels.join('.');
  if (name.startsWith('silent')) return undefined;
  const type = query.readUInt16BE(at + 1) as 1 | 28;
  const address = records[name]?.[type];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  // A response, recursion available; NXDOMAIN for a name without any record.
  header.writeUInt16BE(records[name] === undefined ? 0x8183 : 0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(address === undefined ? 0 : 1, 6);
  const question = query.subarray(12, at + 5);
  if (address === undefined) return Buffer.concat([header, question]);
  const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, address.length, ...address]);
  return Buffer.concat([header, question, record]);
}

let server: Socket;
let lookup: ReturnType<typeof nameServerLookup>;
beforeAll(async () => {
  server = createSocket('udp4', (query, { port, address }) => {
    const response = answer(query);
    if (response !== undefined) server.send(response, port, address);
  }).bind(0, '127.0.0.1');
  await once(server, 'listening');
  lookup = nameServerLookup([`127.0.0.1:${(server.address() as AddressInfo).port}`]);
});
afterAll(() => void server.close());

const find = (name: string) =>
  new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)));
  });

test('a name resolves to its addresses of both families', async () => {
  expect(await find('both.acme.example')).toEqual([
    { address: '192.0.2.8', family: 4 },
    { address: '2001:db8::8', family: 6 },
  ]);
  expect(await find('four.acme.example')).toEqual([{ address: '192.0.2.7', family: 4 }]);
  expect(await find('six.acme.example')).toEqual([{ address: '2001:db8::9', family: 6 }]);
});

test('a name without an address is an error', async () => {
  await expect(find('absent.acme.example')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});

test('names with unresponsive servers do not delay others', async () => {
  let isOver = false;
  const silent = Array.from({ length: 40 }, (_, index) => find(`silent-${index}.acme.example`));
  void Promise.allSettled(silent).then(() => {
    isOver = true;
  });
  expect(await find('four.acme.example')).toEqual([{ address: '192.0.2.7', family: 4 }]);
  expect(isOver).toBe(false);
  for (const one of silent) await expect(one).rejects.toMatchObject({ code: 'ETIMEOUT' });
});
