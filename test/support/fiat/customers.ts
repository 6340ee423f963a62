import { randomUUID } from 'node:crypto';
import { storedSnapshot } from '../../../src/domain/money/fiat-customers/customer-snapshot.ts';
import { FiatCustomerEntity } from '../../../src/domain/money/fiat-customers/fiat-customer.entity.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import type { Services } from '../../../src/ports/operation-context.ts';
import type { Database } from '../../../src/storage/open-database.ts';
import { call } from '../call.ts';
import type { TestSandbox } from '../sandbox.ts';

/** Creates a user whom the simulated identity office has verified, and returns the id. */
export async function verifiedUser(sandbox: TestSandbox): Promise<string> {
  const { body } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: `alice-${randomUUID()}@example.com` }] },
  });
  await verify(sandbox, { type: 'user', id: body.id });
  return body.id;
}

/** Creates an organization that the simulated identity office has verified, and returns the id. */
export async function verifiedOrganization(sandbox: TestSandbox): Promise<string> {
  const { body: user } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: `owner-${randomUUID()}@example.com` }] },
  });
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [user.id] } });
  const { body } = await call(sandbox, 'createOrganization', {
    body: { display_name: 'Acme Europe GmbH', default_key_quorum_id: quorum.id },
  });
  await verify(sandbox, { type: 'organization', id: body.id });
  return body.id;
}

/**
 * Makes the simulated identity office approve a user or an organization.
 *
 * NOTE: other tests cover the verification itself. Here its result is stored directly.
 */
export async function verify(
  { services, database, fiat, appId }: VerifyingServer,
  entity: { readonly type: 'user' | 'organization'; readonly id: string },
): Promise<void> {
  const environment = 'sandbox';
  const office = services.fiatProviders.find('bridge', environment)!;
  const opened = await office.openCustomer({
    id: undefined,
    kind: entity.type === 'user' ? 'person' : 'business',
    reference: entity.id,
    email: 'someone@example.com',
  });
  if ('fault' in opened) throw new Error(opened.message);
  await fiat.decide(environment, opened.id, { outcome: 'approved' });
  const snapshot = await office.customer(opened.id);
  const em = database.orm.em.fork();
  const nowMs = services.clock.now();
  em.create(FiatCustomerEntity, {
    id: randomUUID(),
    appId,
    entityType: entity.type,
    entityId: entity.id,
    provider: 'bridge',
    environment,
    customerId: opened.id,
    snapshot: storedSnapshot(snapshot!),
    version: 1,
    submittedAtMs: nowMs,
    checkedAtMs: nowMs,
    nextCheckAtMs: nowMs + 365 * 86_400_000,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  });
  await em.flush();
}

interface VerifyingServer extends Pick<TestSandbox, 'fiat' | 'appId'> {
  readonly services: Pick<Services, 'clock' | 'fiatProviders'>;
  readonly database: Pick<Database, 'orm'>;
}

/** Creates a wallet of a user. */
export async function walletOf(sandbox: TestSandbox, userId: string): Promise<Wallet> {
  const { body } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', entity: { type: 'user', id: userId } },
  });
  return body;
}

/** Calls the control plane with POST, or another method. */
export async function control(
  sandbox: TestSandbox,
  path: string,
  body: object = {},
  method: 'POST' | 'PUT' = 'POST',
): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox${path}`,
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
}
