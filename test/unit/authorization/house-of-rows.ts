import { createPrivateKey, sign } from 'node:crypto';
import { createHttpJwks } from '../../../src/adapters/jwks-http.ts';
import {
  noCardIssuers,
  noChains,
  noCustodians,
  noFiatProviders,
  noPrices,
} from '../../../src/adapters/outside-services.ts';
import { adjustableClock, makeIds, seededEntropy } from '../../../src/adapters/runtime.ts';
import type { AppSettings } from '../../../src/domain/access/apps/app.entity.ts';
import { createApp } from '../../../src/domain/access/apps/app.ts';
import { publishedSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { createUser } from '../../../src/domain/wallets/users/user.ts';
import { createUseLog } from '../../../src/domain/wallets/wallet-uses/use-log.ts';
import { p256KeyPairFromSeed } from '../../../src/engine/crypto/p256.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { createNotes, type OperationContext, type Services } from '../../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { afterCommitOf } from '../../support/after-commit.ts';
import { type DatabaseKind, openTestDatabase } from '../../support/databases.ts';
import { noWebhooks } from '../../support/no-webhooks.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';

export const startMs = 1_763_719_200_000;
export const acme = { id: 'cmh2k3v9e0000l20c9q7ab4yz', name: 'Acme' };

/** The canonical payloads of the request that tests send. */
export const payloads = [
  '{"body":{"a":1},"headers":{"service-app-id":"acme"},"method":"PATCH","url":"https://a/v1/x","version":1}',
];

export interface Request {
  signatures?: readonly string[];
  payloads?: readonly string[];
  diagnostics?: boolean;
  app?: { id: string; name: string };
}

/** An empty database with one app, and functions that run verbs on it like operations. */
export async function openHouse(kind: DatabaseKind, settings: AppSettings = {}) {
  const database = await openTestDatabase(kind);
  const entropy = seededEntropy('house');
  const clock = adjustableClock({ startMs, frozen: true });
  const services: Services = {
    processId: 'test',
    clock,
    machine: clock,
    entropy,
    ids: makeIds(entropy),
    keyStore: createKeyStore({
      masterKeys: [localMasterKey('test', new Uint8Array(32).fill(1), entropy)],
      entropy,
    }),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    jwks: createHttpJwks(clock),
    chains: noChains,
    prices: noPrices,
    custodians: noCustodians,
    fiatProviders: noFiatProviders,
    cardIssuers: noCardIssuers,
    uses: createUseLog({
      inUnit: inUnitOf(unitsOf(database)),
      log: { debug() {}, info() {}, warn() {}, error() {} },
    }),
    diagnostics: false,
    safeguards: publishedSafeguards,
    prefix: 'service',
    webhooks: noWebhooks,
  };

  /** Runs `work` like an operation: in a transaction that is rolled back when it throws. */
  async function operate<T>(
    work: (context: OperationContext) => Promise<T>,
    request: Request = {},
  ): Promise<T> {
    const em = database.orm.em.fork();
    await em.begin();
    try {
      const encoder = new TextEncoder();
      const result = await work({
        ...services,
        ...afterCommitOf(database),
        diagnostics: request.diagnostics ?? false,
        app: request.app ?? acme,
        em,
        notes: createNotes(),
        nowMs: clock.now(),
        requestId: 'r1',
        proof: {
          ...unsignedProof,
          signatures: request.signatures ?? [],
          canonicalPayloads: () => (request.payloads ?? payloads).map((text) => encoder.encode(text)),
        },
      });
      await em.commit();
      return result;
    } catch (error) {
      await em.rollback();
      throw error;
    }
  }

  await operate((context) => createApp(context, { ...acme, secret: 'secret of acme', settings }));

  return {
    operate,
    clock,
    database,
    services,
    close: () => database.close(),
    /** A user whose custom_auth account has the id `customUserId`. */
    addUser: async (customUserId: string, app = acme) => {
      const account = { type: 'custom_auth', custom_user_id: customUserId } as const;
      const user = await operate((context) => createUser(context, { linked_accounts: [account] }), { app });
      return user.row.id;
    },
  };
}

/** A signer whose key is derived from one repeated byte. */
export function signer(byte: number) {
  const pair = p256KeyPairFromSeed(new Uint8Array(48).fill(byte));
  return {
    publicKey: pair.publicKey,
    sign: (text = payloads[0]) => signWith(pair.privateKeyPkcs8, text ?? ''),
  };
}

/** A signature, base64 DER, under a private key in base64 PKCS #8. */
export function signWith(privateKeyPkcs8: string, text: string): string {
  const key = createPrivateKey({ key: Buffer.from(privateKeyPkcs8, 'base64'), format: 'der', type: 'pkcs8' });
  return sign('sha256', Buffer.from(text, 'utf8'), key).toString('base64');
}
