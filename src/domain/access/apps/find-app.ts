import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Entropy } from '../../../ports/runtime.ts';
import { type App, AppEntity } from './app.entity.ts';

/** Returns the app with this id, or undefined. */
export async function getApp(em: SqlEntityManager, id: string): Promise<App | undefined> {
  return (await em.findOne(AppEntity, { id })) ?? undefined;
}

/**
 * Finds the app with this id.
 *
 * @throws ApiError not_found
 */
export async function findApp(em: SqlEntityManager, id: string): Promise<App> {
  const app = await getApp(em, id);
  if (app === undefined) throw notFound('App');
  return app;
}

/** Lists all apps, oldest first. */
export function listApps(em: SqlEntityManager): Promise<App[]> {
  return em.find(AppEntity, {}, { orderBy: { createdAtMs: 'asc', id: 'asc' } });
}

/** An app secret as stored: only its digest, never the secret itself. */
export interface AppSecretHash {
  /** Hex SHA-256 of the secret's UTF-8 bytes. */
  hash: string;
  createdAtMs: number;
  /** The first millisecond at which the secret is refused; null when it does not expire. */
  expiresAtMs: number | null;
}

/**
 * Draws a new secret of 32 random bytes. For a secret of this entropy, plain SHA-256 is as safe as a slow password
 * hash.
 */
export function drawAppSecret(entropy: Entropy): string {
  return `service_app_secret_${Buffer.from(entropy.bytes(32)).toString('base64url')}`;
}

export function hashAppSecret(secret: string, createdAtMs: number): AppSecretHash {
  return { hash: hash('sha256', secret), createdAtMs, expiresAtMs: null };
}

/** Returns the secrets that are still valid at `nowMs`. */
export function secretsInForce(hashes: readonly AppSecretHash[], nowMs: number): AppSecretHash[] {
  return hashes.filter(({ expiresAtMs }) => expiresAtMs === null || nowMs < expiresAtMs);
}

/**
 * Checks that a path names the app whose credentials the request has.
 *
 * @throws ApiError not_found for another app, as for an app that does not exist.
 */
export function requireOwnApp({ app }: Pick<OperationContext, 'app'>, appId: string): void {
  if (appId !== app.id) throw notFound('App');
}
