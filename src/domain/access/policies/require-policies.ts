import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

/**
 * Checks that the policies named in a body exist and match the wallet's chain type, and locks them against deletion.
 *
 * @param pointer JSON pointer to the array that names them.
 * @throws ApiError invalid_data
 */
export async function requirePolicies(
  context: Pick<OperationContext, 'app' | 'em'>,
  ids: readonly string[],
  chainType: string,
  pointer: string,
): Promise<void> {
  for (const [index, id] of ids.entries()) {
    const row = await selectChainType(context, id).executeTakeFirst();
    const issue = { in: 'body', pointer: `${pointer}/${index}` };
    if (row === undefined) {
      throw new ApiError('invalid_data', `${issue.pointer}: no policy \`${id}\``, {
        data: { issues: [{ ...issue, message: `no policy \`${id}\`` }] },
      });
    }
    if (row.chain_type !== chainType) {
      const message = `the policy is for ${row.chain_type}, the wallet is on ${chainType}`;
      throw new ApiError('invalid_data', `${issue.pointer}: ${message}`, {
        data: { issues: [{ ...issue, message }] },
      });
    }
  }
}

/** HOT: runs for every wallet created under a policy; the entity manager has no key-share lock. */
function selectChainType({ app, em }: Pick<OperationContext, 'app' | 'em'>, id: string) {
  return em
    .getKysely<Tables>()
    .selectFrom('policies')
    .select('chain_type')
    .where('id', '=', id)
    .where('app_id', '=', app.id)
    .forKeyShare();
}
