import { ApiError } from '../../../errors.ts';
import type { DeviceAuthorizationResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { lockName } from '../../../storage/locks.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { drawSecret, drawUserCode, hashOfSecret, showUserCode } from './codes.ts';
import { OauthDeviceCodeEntity } from './oauth-device-code.entity.ts';

/** CHOICE: codes live a quarter of an hour, long enough to log in on another device. */
const LIFETIME_SECONDS = 900;

/** CHOICE: undecided codes of one app at a time; each makes guessing a user code easier. */
const MAX_PENDING = 1_000;

/**
 * CHOICE: clients without a secret have half of these together, and those behind one network address the given number.
 * Anybody can be such a client, so they must not use up the places of the clients with a secret, and one of them not
 * those of the others.
 */
const MAX_PUBLIC = MAX_PENDING / 2;
const MAX_PUBLIC_OF_NETWORK = 25;

const MAX_DRAWS = 5;

/**
 * Creates the codes of a device that wants a user's tokens. Source: RFC 8628 section 3.2.
 *
 * @throws ApiError feature_not_enabled without a verification page; too_many_requests for an app with too many
 * undecided codes.
 */
export async function authorizeDevice(context: OperationContext): Promise<DeviceAuthorizationResponse> {
  const { settings: stored } = await findApp(context.em, context.app.id);
  const settings = readAppSettings(stored).device_flow;
  const page = settings.verification_uri ?? ownPage(context);
  if (page === undefined) {
    throw new ApiError('feature_not_enabled', 'the app has no `device_flow.verification_uri`');
  }
  await requireRoom(context);
  const deviceCode = drawSecret(context.entropy);
  const userCode = await storeCode(context, hashOfSecret(deviceCode), settings.interval_seconds);
  const complete = new URL(page);
  complete.searchParams.set('user_code', showUserCode(userCode));
  return {
    device_code: deviceCode,
    user_code: showUserCode(userCode),
    verification_uri: page,
    verification_uri_complete: complete.href,
    expires_in: LIFETIME_SECONDS,
    interval: settings.interval_seconds,
  };
}

function ownPage({ devicePage, proof }: OperationContext): string | undefined {
  return devicePage === undefined ? undefined : proof.urlOf(devicePage);
}

/** INVARIANT: counting and storing are not interleaved with those of other requests. */
async function requireRoom({ app, em, nowMs, proof }: OperationContext): Promise<void> {
  await lockName(em, 'device codes', `device-codes:${app.id}`);
  const waiting = { appId: app.id, status: 'pending', expiresAtMs: { $gt: nowMs } } as const;
  if ((await em.count(OauthDeviceCodeEntity, waiting)) >= MAX_PENDING) {
    throw new ApiError('too_many_requests', `the app has ${MAX_PENDING} undecided device codes`);
  }
  const { publicClientNetwork: publicNetwork } = proof;
  if (publicNetwork === undefined) return;
  if ((await em.count(OauthDeviceCodeEntity, { ...waiting, publicNetwork: { $ne: null } })) >= MAX_PUBLIC) {
    const message = `clients without a secret have ${MAX_PUBLIC} undecided device codes of the app`;
    throw new ApiError('too_many_requests', message);
  }
  if ((await em.count(OauthDeviceCodeEntity, { ...waiting, publicNetwork })) >= MAX_PUBLIC_OF_NETWORK) {
    const message = `clients without a secret at this network address have ${MAX_PUBLIC_OF_NETWORK} undecided device codes`;
    throw new ApiError('too_many_requests', message);
  }
}

/** Stores the code under a user code that no other one has, and returns that. */
async function storeCode(context: OperationContext, id: string, intervalSeconds: number): Promise<string> {
  const { app, nowMs } = context;
  for (let draw = 1; ; draw += 1) {
    const userCode = drawUserCode(context.entropy);
    try {
      await inSavepoint(context.em, async (em) => {
        em.create(OauthDeviceCodeEntity, {
          id,
          appId: app.id,
          userCode,
          status: 'pending',
          publicNetwork: context.proof.publicClientNetwork ?? null,
          userId: null,
          intervalSeconds,
          polledAtMs: null,
          createdAtMs: nowMs,
          expiresAtMs: nowMs + LIFETIME_SECONDS * 1000,
        });
      });
      return userCode;
    } catch (error) {
      if (draw === MAX_DRAWS || !isUniqueViolation(error)) throw error;
    }
  }
}
