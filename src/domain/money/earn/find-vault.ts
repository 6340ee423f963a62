import type { InferEntity } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { chainOfCaip2, type KnownChain } from '../../../assets/known-chains.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { EarnVaultEntity } from './earn-vault.entity.ts';

export type EarnVault = InferEntity<typeof EarnVaultEntity>;

type FindContext = Pick<PlanContext, 'em' | 'app'>;

/** The app's vault of the id in the path. @throws ApiError not_found */
export async function findVault(context: FindContext, id: string): Promise<EarnVault> {
  const vault = await lookUp(context, id);
  if (vault === null) throw notFound('Vault');
  return vault;
}

/**
 * The app's vault of the id in the body.
 *
 * @param pointer of the id.
 * @throws ApiError invalid_data
 */
export async function findNamedVault(
  context: FindContext,
  id: string,
  pointer = '/vault_id',
): Promise<EarnVault> {
  const vault = await lookUp(context, id);
  if (vault === null) throw invalidField(pointer, `expected the id of a vault of this app, got \`${id}\``);
  return vault;
}

/** The vault of an id, of any app. @throws ApiError not_found */
export async function getVault(em: SqlEntityManager, id: string): Promise<EarnVault> {
  const vault = await em.findOne(EarnVaultEntity, { id });
  if (vault === null) throw notFound('Vault');
  return vault;
}

/** The chain of a vault. @throws ApiError not_supported for a chain without a name here. */
export function chainOfVault({ caip2 }: EarnVault): KnownChain {
  const chain = chainOfCaip2(caip2);
  if (chain === undefined) throw new ApiError('not_supported', `the chain \`${caip2}\` is not supported`);
  return chain;
}

function lookUp({ em, app }: FindContext, id: string): Promise<EarnVault | null> {
  return em.findOne(EarnVaultEntity, { id, appId: app.id });
}
