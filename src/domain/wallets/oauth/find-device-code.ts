import type { SqlEntityManager } from '@mikro-orm/sql';
import { notFound } from '../../../errors.ts';
import { normalizeUserCode } from './codes.ts';
import { type OauthDeviceCode, OauthDeviceCodeEntity } from './oauth-device-code.entity.ts';

/**
 * A device code of any app, by its user code: for operators.
 *
 * @throws ApiError not_found
 */
export async function findDeviceCode(em: SqlEntityManager, userCode: string): Promise<OauthDeviceCode> {
  const code = await em.findOne(OauthDeviceCodeEntity, { userCode: normalizeUserCode(userCode) });
  if (code === null) throw notFound('User code');
  return code;
}
