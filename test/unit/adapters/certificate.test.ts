import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadOrCreateCertificate, type StoredCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { temporaryFolder } from '../../support/run-custos.ts';

const dayMs = 24 * 60 * 60 * 1000;

function keep(
  folder: string,
  options: { hosts?: string[]; nowMs?: number } = {},
): Promise<StoredCertificate> {
  const clock = options.nowMs === undefined ? systemClock : { now: () => options.nowMs! };
  return loadOrCreateCertificate(folder, { clock, entropy: systemEntropy, hosts: options.hosts ?? [] });
}

/** The response to a client that trusts only the authority, for a host name. */
async function greet(certificate: StoredCertificate, host: string): Promise<string> {
  const server = createServer(certificate, (_request, response) => response.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port,
        servername: host,
        headers: { host },
        ca: readFileSync(certificate.caFile),
      };
      const checked = /^[\d.:]+$/.test(host) ? { ...options, servername: '' } : options;
      get({ ...checked, agent: false }, (response) => {
        response.setEncoding('utf8');
        response.on('data', resolve);
      }).on('error', reject);
    });
  } finally {
    server.close();
  }
}

test('clients that trust the authority trust the server, under its loopback names only', async () => {
  const certificate = await keep(temporaryFolder());
  expect(await greet(certificate, 'localhost')).toBe('hello');
  expect(await greet(certificate, '127.0.0.1')).toBe('hello');
  await expect(greet(certificate, 'acme.example')).rejects.toThrow(/altnames/);
  const leaf = new X509Certificate(certificate.cert);
  expect(leaf.subjectAltName?.split(', ').sort()).toEqual([
    'DNS:localhost',
    'IP Address:0:0:0:0:0:0:0:1',
    'IP Address:127.0.0.1',
  ]);
  expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
});

test('a certificate is kept while it is valid', async () => {
  const folder = temporaryFolder();
  const first = await keep(folder);
  expect(await keep(folder)).toEqual(first);
  // The private key of the authority is not stored anywhere, so no other certificate can be issued.
  expect(readFileSync(join(folder, 'certificate.json'), 'utf8').match(/BEGIN PRIVATE KEY/g)?.length).toBe(1);
  expect(statSync(join(folder, 'certificate.json')).mode & 0o077).toBe(0);
});

test.each([
  ['it runs out', { nowMs: Date.now() + 380 * dayMs }],
  ['the clock stands before it', { nowMs: Date.now() - 2 * dayMs }],
  ['it lacks a host', { hosts: ['acme.example'] }],
])('a certificate is replaced when %s', async (_why, options) => {
  const folder = temporaryFolder();
  const first = await keep(folder);
  const second = await keep(folder, options);
  expect(second.cert).not.toBe(first.cert);
  expect(second.caFile).toBe(first.caFile);
  expect(await keep(folder, options)).toEqual(second);
  // Clients that trust the file trust a server that still runs with the first certificate.
  for (const { ca } of [first, second]) expect(readFileSync(first.caFile, 'utf8')).toContain(ca.trim());
});

test('a file that is not a certificate is replaced', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'certificate.json'), '{"ca":"');
  expect(await greet(await keep(folder), 'localhost')).toBe('hello');
});

test('servers that start concurrently use one certificate', async () => {
  const folder = temporaryFolder();
  const certificates = await Promise.all(Array.from({ length: 5 }, () => keep(folder)));
  expect(new Set(certificates.map(({ cert }) => cert)).size).toBe(1);
  expect(readdirSync(folder).sort()).toEqual(['ca.pem', 'certificate.json']);
});

test('servers for different hosts that start concurrently are all trusted by the same file', async () => {
  const folder = temporaryFolder();
  const hosts = ['a.example', 'b.example', 'c.example'];
  const certificates = await Promise.all(hosts.map((host) => keep(folder, { hosts: [host] })));
  for (const [index, certificate] of certificates.entries()) {
    expect(await greet(certificate, hosts[index]!)).toBe('hello');
  }
});

test('an expired authority is removed when another one is added', async () => {
  const folder = temporaryFolder();
  const first = await keep(folder);
  const second = await keep(folder, { nowMs: Date.now() + 4000 * dayMs });
  const trusted = readFileSync(second.caFile, 'utf8');
  expect([trusted.includes(first.ca.trim()), trusted.includes(second.ca.trim())]).toEqual([false, true]);
});
