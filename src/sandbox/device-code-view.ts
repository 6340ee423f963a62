import type { SqlEntityManager } from '@mikro-orm/sql';
import { findApp } from '../domain/access/apps/find-app.ts';
import { showUserCode } from '../domain/wallets/oauth/device-codes.ts';
import type { OauthDeviceCode } from '../domain/wallets/oauth/oauth.entity.ts';
import type { SandboxDeviceCode } from './generated/schemas.ts';

/** A device code without the code of the device. */
export async function deviceCodeView(
  em: SqlEntityManager,
  code: OauthDeviceCode,
  nowMs: number,
): Promise<SandboxDeviceCode> {
  const app = await findApp(em, code.appId);
  return {
    user_code: showUserCode(code.userCode),
    app_id: app.id,
    app_name: app.name,
    status: code.expiresAtMs <= nowMs && code.status !== 'redeemed' ? 'expired' : code.status,
    expires_at_ms: code.expiresAtMs,
  };
}
