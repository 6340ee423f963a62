import type { App } from '../../domain/access/apps/app.entity.ts';
import { createApp as createAppVerb, updateApp } from '../../domain/access/apps/app.ts';
import { checkAppSettings } from '../../domain/access/apps/app-settings.ts';
import { listApps as listAppsVerb } from '../../domain/access/apps/find-app.ts';
import { sealTestCodes, withoutTestCodes } from '../../domain/access/apps/test-account-codes.ts';
import { checkJwtAuthReachable } from '../../domain/wallets/tokens/verify-custom-jwt.ts';
import { restoreWallet as restoreWalletVerb } from '../../domain/wallets/wallets/update-wallet.ts';
import type { Handler, OperatorHandler } from '../control-plane.ts';
import type { SandboxApp } from '../generated/schemas.ts';

export const listApps: Handler<'listApps'> = async (_input, context) => {
  const apps = await context.read(listAppsVerb);
  return { data: apps.map(appView) };
};

export const createApp: Handler<'createApp'> = async ({ body }, context) => {
  const { clock, entropy, ids, keyStore } = context;
  const nowMs = clock.now();
  const given = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (given !== undefined) await checkJwtAuthReachable(context, given);
  const id = body.id ?? ids.cuid();
  const settings = given && (await sealTestCodes(keyStore, id, given));
  const { app, secret } = await context.changeApps((em) =>
    createAppVerb({ em, entropy, ids, nowMs }, { ...body, id, settings }),
  );
  return { ...appView(app), secret };
};

export const configureApp: Handler<'configureApp'> = async ({ path, body }, context) => {
  const { clock, entropy, ids, keyStore } = context;
  const nowMs = clock.now();
  const given = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (given !== undefined) await checkJwtAuthReachable(context, given);
  const settings = given && (await sealTestCodes(keyStore, path.app_id, given));
  const app = await context.changeApps((em) =>
    updateApp({ em, entropy, ids, nowMs }, path.app_id, { ...body, settings }),
  );
  return appView(app);
};

export const restoreWallet: OperatorHandler<'restoreWallet'> = async (
  { path },
  { change, clock, ids, by },
) => {
  const nowMs = clock.now();
  const wallet = await change((em, notes) =>
    restoreWalletVerb({ em, notes, ids, nowMs, by }, path.wallet_id),
  );
  return {
    id: wallet.id,
    app_id: wallet.app_id,
    address: wallet.address,
    chain_type: wallet.chain_type,
  };
};

/** Returns an app in the form of the control plane, without its secrets. */
function appView(app: App): SandboxApp {
  return {
    id: app.id,
    name: app.name,
    created_at_ms: app.createdAtMs,
    settings: withoutTestCodes(app.settings),
  };
}
