import type { SqlEntityManager } from '@mikro-orm/sql';
import { OauthGrantEntity } from '../tokens/oauth-grant.entity.ts';
import { OauthDeviceCodeEntity } from './oauth-device-code.entity.ts';
import { OauthRefreshTokenEntity } from './oauth-refresh-token.entity.ts';
import { OauthWrongCodeEntity } from './oauth-wrong-code.entity.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** For an hour, devices learn that their code has expired; then it is unknown. */
const KEEP_CODES_MS = HOUR_MS;

/** CHOICE: the reuse of a refresh token is noticed for 30 days, then the token is unknown. */
const KEEP_USED_MS = 30 * DAY_MS;

/** Longer than any grant can stay unused: `MAX_GRANT_DAYS` of the app settings. */
const KEEP_GRANTS_MS = 3_660 * DAY_MS;

/** Longer than the longest window in which wrong codes count. */
const KEEP_WRONG_MS = HOUR_MS;

/** Deletes device codes, tokens and grants that can no longer be used; returns how many. */
export async function dropExpiredOauth(
  em: SqlEntityManager,
  { nowMs, machineMs }: { readonly nowMs: number; readonly machineMs: number },
): Promise<number> {
  const codes = await em.nativeDelete(OauthDeviceCodeEntity, {
    expiresAtMs: { $lte: nowMs - KEEP_CODES_MS },
  });
  const tokens = await em.nativeDelete(OauthRefreshTokenEntity, {
    usedAtMs: { $lte: nowMs - KEEP_USED_MS },
  });
  const grants = await em.nativeDelete(OauthGrantEntity, { lastUsedAtMs: { $lte: nowMs - KEEP_GRANTS_MS } });
  const wrong = await em.nativeDelete(OauthWrongCodeEntity, { atMs: { $lte: machineMs - KEEP_WRONG_MS } });
  return codes + tokens + grants + wrong;
}
