import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import { expect } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import type { databaseKinds } from '../databases.ts';
import { signIntent } from '../intents.ts';
import { openOperations, type RunInput, type TestOperations } from '../run-operations.ts';

/** The key of the app's own login. */
const login = generateKeyPairSync('rsa', { modulusLength: 2048 });
/** A key pair as base64 PKCS #8 and SubjectPublicKeyInfo. */
export interface Key {
  readonly privateKey: string;
  readonly publicKey: string;
}

type Body = Record<string, string> & { code?: string };

/**
 * Opens the operations of one app, whose users log in with tokens. The server verifies the tokens and, if
 * `isPinned`, so does the key store.
 */
export async function openLogins(kind: (typeof databaseKinds)[number], isPinned: boolean) {
  const keys = [{ algorithm: 'RS256', kid: undefined, key: login.publicKey } as const];
  const server = await openOperations(
    kind,
    isPinned ? { login: { keys, userIdClaim: 'sub', audiences: [] } } : {},
  );
  const pem = login.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  const jwtAuth = { user_id_claim: 'sub', audiences: [], verification_key: pem };
  await inDatabase(server, (em) =>
    em
      .getKysely<Tables>()
      .updateTable('apps')
      .set({ settings: JSON.stringify({ jwt_auth: jwtAuth }) })
      .execute(),
  );
  return server;
}

export function inDatabase<T>(
  { database }: TestOperations,
  work: (em: OperationContext['em']) => Promise<T>,
): Promise<T> {
  return database.orm.em.fork().transactional((em) => work(em as OperationContext['em']));
}

export function keyOf({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: string }): Key {
  return { publicKey, privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
}

/** The actions of clients of the app. */
export function clientsOf(server: TestOperations) {
  async function run<Answer = Body>(id: OperationId, input: RunInput, ...by: readonly Key[]) {
    const signWith = by.map(({ privateKey }) => privateKey);
    return (await server.run(id, { ...input, signWith })) as { status: number; body: Answer };
  }
  async function done<Answer = Body>(id: OperationId, input: RunInput, ...by: readonly Key[]) {
    const answer = await run<Answer>(id, input, ...by);
    expect(answer, JSON.stringify(answer.body)).toHaveProperty('status', 200);
    return answer.body;
  }
  return {
    run,
    done,
    account: (subject: string) => ({ type: 'custom_auth', custom_user_id: subject }),
    async keyFor(subject: string, claims: object = {}): Promise<Key> {
      const token = await new SignJWT({ sub: subject, ...claims })
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
        .setExpirationTime(Math.floor(server.clock.nowMs / 1000) + 3600)
        .sign(login.privateKey);
      const { authorization_key: privateKey } = await done('authenticateWallets', {
        body: { user_jwt: token },
      });
      const der = { key: Buffer.from(privateKey!, 'base64'), format: 'der', type: 'pkcs8' } as const;
      const publicKey = createPublicKey(createPrivateKey(der)).export({ format: 'der', type: 'spki' });
      return { privateKey: privateKey!, publicKey: publicKey.toString('base64') };
    },
    authorize(intent: IntentResponse, { privateKey }: Key) {
      const signature = signIntent({ prefix: 'service', appId: server.app.id }, intent, privateKey);
      const input = {
        path: { intent_id: intent.intent_id },
        body: { signature, timestamp: server.clock.nowMs },
      };
      return run<IntentResponse & Body>('authorizeIntent', input);
    },
  };
}
