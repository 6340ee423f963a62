import { treasuryQuorum } from '../../mocks/key-quorums.ts';
import { spendingPolicy } from '../../mocks/policies.ts';
import { aliceUser, bobUser } from '../../mocks/users.ts';
import { acmeSolanaWallet, acmeWallet, aliceWallet, treasuryWallet } from '../../mocks/wallets.ts';
import { ApiError } from '../errors.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import { registry } from '../generated/registry.ts';
import type { Handler, OperationContext } from '../operation-context.ts';

/** Operations that create a resource from a body alone. */
type Creation = 'createUser' | 'createKeyQuorum' | 'createPolicy' | 'createWallet';

/** Creates the named seed data through the handlers of the API. */
export async function plantSeedData(context: OperationContext): Promise<void> {
  const plant = <Id extends Creation & OperationId>(id: Id, body: Operations[Id]['body']) =>
    run(context, id, body);
  await plant('createUser', aliceUser);
  await plant('createUser', bobUser);
  const quorum = await plant('createKeyQuorum', treasuryQuorum);
  const policy = await plant('createPolicy', spendingPolicy);
  await plant('createWallet', acmeWallet);
  await plant('createWallet', acmeSolanaWallet);
  await plant('createWallet', aliceWallet);
  await plant('createWallet', {
    ...treasuryWallet,
    ...(quorum === undefined ? {} : { owner_id: quorum.id }),
    ...(policy === undefined ? {} : { policy_ids: [policy.id] }),
  });
}

/** The created resource; undefined if the operation is not implemented. */
async function run<Id extends Creation>(
  context: OperationContext,
  id: Id,
  body: Operations[Id]['body'],
): Promise<Operations[Id]['response'] | undefined> {
  const { run: handler } = registry[id] as unknown as { run: Handler<Id> };
  try {
    return await handler({ path: {}, query: {}, body } as Parameters<typeof handler>[0], context);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_implemented') return undefined;
    throw error;
  }
}
