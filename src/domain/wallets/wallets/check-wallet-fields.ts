import { ApiError, invalidField } from '../../../errors.ts';
import type { AdditionalSignerInput, AssignWalletEntityRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { requireFewMembers } from '../../access/key-quorums/require-few-members.ts';
import { requireKeyQuorums } from '../../access/key-quorums/require-key-quorums.ts';
import { type OwnerFields, resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { admitWallet } from '../../access/organizations/wallet-entity.ts';
import { requirePolicies } from '../../access/policies/require-policies.ts';

type CheckContext = Pick<OperationContext, 'app' | 'em'>;

/** The wallet fields of a body, without the owner. */
export interface WalletFields {
  readonly policy_ids?: readonly string[] | undefined;
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

/**
 * Checks that the policies and key quorums that a body names exist in the app, and that the policies match the
 * wallet's chain type.
 *
 * @throws ApiError invalid_data
 */
export async function checkWalletFields(
  context: CheckContext,
  fields: WalletFields,
  chainType: string,
): Promise<void> {
  await requirePolicies(context, fields.policy_ids ?? [], chainType, '/policy_ids');
  const signers = fields.additional_signers ?? [];
  for (const [index, { override_policy_ids: policyIds = [] }] of signers.entries()) {
    await requirePolicies(context, policyIds, chainType, `/additional_signers/${index}/override_policy_ids`);
  }
  const quorums = signers.map((signer) => signer.signer_id);
  await requireKeyQuorums(context, quorums, '/additional_signers');
  await requireFewMembers(context, quorums, '/additional_signers');
}

/**
 * Resolves the key quorum that owns a new wallet, and locks the user or organization that the wallet is assigned to
 * until the transaction ends. Without an explicit owner, an organization's default key quorum owns its wallets.
 *
 * @param newOwnerId the id of a key quorum that is made for the owner. Default: a new one.
 *
 * Result: null for a wallet without an owner. CHOICE: `owner: null` means no owner, even for a wallet of an
 * organization.
 *
 * @throws ApiError invalid_data, wallet_entity_limit_exceeded
 */
export async function resolveWalletOwner(
  context: OperationContext,
  body: OwnerFields & { readonly entity?: AssignWalletEntityRequest | undefined },
  newOwnerId?: string,
): Promise<string | null> {
  const defaultOwnerId = body.entity === undefined ? null : await admitEntity(context, body.entity);
  const ownerId = await resolveOwner(context, body, newOwnerId);
  return ownerId === undefined ? defaultOwnerId : ownerId;
}

async function admitEntity(context: CheckContext, entity: AssignWalletEntityRequest): Promise<string | null> {
  try {
    return await admitWallet(context, entity);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    throw invalidField('/entity/id', `no ${entity.type} \`${entity.id}\` in this app`);
  }
}
