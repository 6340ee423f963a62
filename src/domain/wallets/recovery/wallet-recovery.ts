import { ApiError, invalidField, relocateIssues } from '../../../errors.ts';
import type {
  CreateWalletsWithRecoveryRequest,
  CreateWalletsWithRecoveryResponse,
  LinkedAccountInput,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { createKeyQuorum } from '../../access/key-quorums/key-quorum.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { getLogin, lockUser } from '../../access/user-records/find-user.ts';
import { recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import { encodeLinkedAccount, type LinkedAccountRecord } from '../users/linked-account-kinds.ts';
import { createUser } from '../users/user.ts';
import { sealUnderUsers } from '../wallet-authorities/new-authority.ts';
import { createWallet, createWalletKeys, type KeyOfWallet } from '../wallets/create-wallet.ts';
import { walletView } from '../wallets/find-wallet.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';
import { WalletRecoveryEntity } from './wallet-recovery.entity.ts';

const RECOVERY_POINTER = '/recovery_user/linked_accounts';

/** The two users of wallets with recovery. Both ids are equal if the primary signer is also the recovery user. */
interface Users {
  readonly primaryId: string;
  readonly recoveryId: string;
}

/**
 * Creates wallets that a primary signer uses and a recovery user can also use. Creates all of them or none.
 *
 * CHOICE: each user can sign alone, because the owner is a key quorum of both with threshold 1. If a `custom_auth`
 * account of the recovery user names the primary signer, both are the same user.
 *
 * @throws ApiError invalid_data; linked_to_another_user; resource_conflict when an external id is taken, which also
 * refuses a repeated request.
 */
export async function createWalletsWithRecovery(
  context: OperationContext,
  { wallets, primary_signer: primary, recovery_user: recovery }: CreateWalletsWithRecoveryRequest,
): Promise<CreateWalletsWithRecoveryResponse> {
  const accounts = readAccounts(recovery.linked_accounts);
  const drawn = await createWalletKeys(
    context,
    wallets.map((wallet) => wallet.chain_type),
  );
  const users = await resolveUsers(context, primary.subject_id, {
    accounts,
    inputs: recovery.linked_accounts,
  });
  const ownerId = await ownerOf(context, users);
  const keys = await sealUnderUsers(context, drawn, { ownerId, wallets });
  const created: WalletRow[] = [];
  for (const [index, input] of wallets.entries()) {
    const key = Promise.resolve(keys[index] as KeyOfWallet);
    const wallet = await createWallet(context, { ...input, owner_id: ownerId }, key).catch(
      (error: unknown) => {
        throw relocateIssues(error, `/wallets/${index}`);
      },
    );
    created.push(wallet);
  }
  await setUpRecovery(context, users, created);
  return { wallets: created.map(walletView), recovery_user_id: users.recoveryId };
}

function readAccounts(inputs: readonly LinkedAccountInput[]): LinkedAccountRecord[] {
  const accounts = inputs.map((account, index) =>
    encodeLinkedAccount(account, `${RECOVERY_POINTER}/${index}`),
  );
  if (new Set(accounts.map(({ type }) => type)).size !== accounts.length) {
    throw invalidField(RECOVERY_POINTER, 'expected at most one account of each type');
  }
  return accounts;
}

interface RecoveryAccounts {
  readonly accounts: readonly LinkedAccountRecord[];
  /** The accounts in the form of the request. */
  readonly inputs: readonly LinkedAccountInput[];
}

async function resolveUsers(
  context: OperationContext,
  subject: string,
  recovery: RecoveryAccounts,
): Promise<Users> {
  const login = { type: 'custom_auth', custom_user_id: subject } as const;
  const { subject: canonical } = encodeLinkedAccount(login, '/primary_signer/subject_id');
  const known = (await getLogin(context, { type: 'custom_auth', subject: canonical }))?.userId;
  const isSame = recovery.accounts.some(
    ({ type, subject: other }) => type === 'custom_auth' && other === canonical,
  );
  if (isSame) {
    if (known !== undefined) await requireAccounts(context, known, recovery.accounts);
    const id = known ?? (await createRecoveryUser(context, recovery.inputs));
    return { primaryId: id, recoveryId: id };
  }
  if (known !== undefined) await lockUser(context, known);
  const primaryId = known ?? (await createRecoveryUser(context, [login]));
  return { primaryId, recoveryId: await createRecoveryUser(context, recovery.inputs) };
}

async function createRecoveryUser(
  context: OperationContext,
  accounts: readonly LinkedAccountInput[],
): Promise<string> {
  const user = await createUser(context, { linked_accounts: [...accounts] }).catch((error: unknown) => {
    throw relocateIssues(error, '/recovery_user');
  });
  return user.row.id;
}

/**
 * Requires that the user already has all these accounts.
 *
 * CHOICE: an existing user gets no new way to log in here, because that may need a key of the user. The account must
 * already be linked.
 *
 * @throws ApiError not_found; linked_to_another_user; invalid_data for an account that is not linked.
 */
async function requireAccounts(
  context: OperationContext,
  userId: string,
  accounts: readonly LinkedAccountRecord[],
): Promise<void> {
  await lockUser(context, userId);
  for (const [index, { type, subject }] of accounts.entries()) {
    const owner = (await getLogin(context, { type, subject }))?.userId;
    if (owner === userId) continue;
    if (owner !== undefined) {
      throw new ApiError('linked_to_another_user', undefined, { headers: { 'x-should-retry': 'false' } });
    }
    throw invalidField(`${RECOVERY_POINTER}/${index}`, 'the user exists: link this account first');
  }
}

async function ownerOf(context: OperationContext, { primaryId, recoveryId }: Users): Promise<string> {
  if (primaryId === recoveryId) {
    return (await resolveOwner(context, { owner: { user_id: primaryId } }))!;
  }
  const members = { user_ids: [primaryId, recoveryId], authorization_threshold: 1 };
  return (await createKeyQuorum(context, members)).id;
}

async function setUpRecovery(
  context: OperationContext,
  { primaryId, recoveryId }: Users,
  wallets: readonly WalletRow[],
): Promise<void> {
  for (const wallet of wallets) {
    // If the primary signer is also the only recovery signer, there is no recovery: the lost key would be the recovery
    // key.
    if (primaryId !== recoveryId) {
      context.em.create(WalletRecoveryEntity, {
        walletId: wallet.id,
        appId: context.app.id,
        userId: recoveryId,
        recoveredAtMs: null,
      });
    }
    await recordEvent(context, {
      appId: context.app.id,
      type: 'wallet.recovery_setup',
      payload: {
        user_id: recoveryId,
        wallet_id: wallet.id,
        wallet_address: wallet.address,
        method: 'service_generated_recovery_key',
      },
    });
  }
  await context.em.flush();
}

// KYSELY: the condition has a subquery of memberships.

/**
 * Records `wallet.recovered` once for each wallet, when its recovery user gets a key that signs for it. Archived
 * wallets and wallets with a new owner are left out, because the key does not sign for them.
 */
export async function noteRecovery(context: OperationContext, userId: string): Promise<void> {
  const { app, em, nowMs } = context;
  const waiting = await em.find(
    WalletRecoveryEntity,
    { appId: app.id, userId, recoveredAtMs: null },
    { ...lockForUpdate, orderBy: { walletId: 'asc' } },
  );
  if (waiting.length === 0) return;
  const database = em.getKysely<Tables>();
  const covered = await database
    .selectFrom('wallets')
    .select(['id', 'address'])
    .where(
      'id',
      'in',
      waiting.map(({ walletId }) => walletId),
    )
    .where('archived_at_ms', 'is', null)
    .where('owner_id', 'in', membershipsOf(database, { kind: 'user', member: userId }))
    .orderBy('id')
    .execute();
  for (const wallet of covered) {
    const recovery = waiting.find(({ walletId }) => walletId === wallet.id);
    if (recovery === undefined) continue;
    recovery.recoveredAtMs = nowMs;
    await recordEvent(context, {
      appId: app.id,
      type: 'wallet.recovered',
      payload: { user_id: userId, wallet_id: wallet.id, wallet_address: wallet.address },
    });
  }
  await em.flush();
}
