import type { CreateWalletRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { authorityWithOwner, type NewAuthority } from '../wallet-authorities/new-authority.ts';
import { checkWalletFields, resolveWalletOwner } from './check-wallet-fields.ts';
import { createWalletKey, type KeyOfWallet } from './create-wallet-key.ts';
import { insertWallet } from './insert-wallet.ts';
import type { WalletRow } from './wallet-row.ts';

/**
 * Creates a wallet with a new key under a planned authority.
 *
 * @throws ApiError what `createWallet` throws.
 */
export async function createPreparedWallet(
  context: OperationContext,
  input: CreateWalletRequest,
  planned: Planned<NewAuthority>,
): Promise<WalletRow> {
  return createWallet(context, input, createWalletKey(context, input.chain_type, unwrapPlan(planned)));
}

/**
 * Creates a wallet with a new key.
 *
 * @param key drawn in advance by callers that create several wallets.
 * @throws ApiError invalid_data when an owner, signer, policy or entity does not exist, resource_conflict when the
 * external id is taken, wallet_entity_limit_exceeded.
 */
export async function createWallet(
  context: OperationContext,
  input: CreateWalletRequest,
  key: Promise<KeyOfWallet> = createWalletKey(context, input.chain_type),
): Promise<WalletRow> {
  // NOTE: derived before the first statement: a transaction begins with it, and on SQLite all other requests wait for
  // that.
  const drawn = await key;
  await checkWalletFields(context, input, input.chain_type);
  const ownerId = await resolveWalletOwner(context, input, drawn.newOwnerId);
  const wallet = {
    chainType: input.chain_type,
    ownerId,
    displayName: input.display_name,
    externalId: input.external_id,
    policyIds: input.policy_ids,
    additionalSigners: input.additional_signers,
    entity: input.entity,
  };
  return insertWallet(context, wallet, await keyFor(context, input.chain_type, { drawn, ownerId }));
}

/** The drawn key, unless another key quorum than the expected one became the owner meanwhile, which is rare. */
async function keyFor(
  context: OperationContext,
  chainType: CreateWalletRequest['chain_type'],
  { drawn, ownerId }: { drawn: KeyOfWallet; ownerId: string | null },
): Promise<KeyOfWallet> {
  if (drawn.authority === undefined || ownerId === null || drawn.ownerId === ownerId) return drawn;
  const planned = await authorityWithOwner(context, drawn.authority, ownerId);
  return createWalletKey(context, chainType, planned);
}
