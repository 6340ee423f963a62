import { invalidField } from '../../errors.ts';
import type { AdditionalSignerInput, AssignWalletEntityRequest } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { requireKeyQuorums } from '../key-quorums/find-key-quorum.ts';
import { requirePolicies } from '../policies/find-policy.ts';
import { requireUsers } from '../users/find-user.ts';

type CheckContext = Pick<OperationContext, 'app' | 'em'>;

/** What a body says of a wallet beside its owner. */
export interface WalletFields {
  readonly policy_ids?: readonly string[] | undefined;
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

/**
 * Checks that the policies and key quorums that a body names exist in the app, and that the policies are made for
 * the wallet's chain type.
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
}

/**
 * Checks that the user or organization that a body gives a wallet to exists in the app.
 *
 * @throws ApiError invalid_data
 */
export async function checkEntity(
  context: CheckContext,
  entity: AssignWalletEntityRequest | undefined,
): Promise<void> {
  if (entity?.type === 'user') await requireUsers(context, [entity.id], '/entity/id');
  // An app has no organizations yet.
  if (entity?.type === 'organization') {
    throw invalidField('/entity/id', `no organization \`${entity.id}\` in this app`);
  }
}
