import assert from 'node:assert/strict';
import { acmeApp } from '../../mocks/apps.ts';
import type { SandboxConfig } from '../config/config.ts';
import type { AppSettings } from '../domain/access/apps/app.entity.ts';
import { createApp, rotateAppSecret, updateApp } from '../domain/access/apps/app.ts';
import { checkAppSettings } from '../domain/access/apps/app-settings.ts';
import { getApp, hashAppSecret, secretsInForce } from '../domain/access/apps/find-app.ts';
import { sealTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { dropEvents } from '../domain/base/events/events.ts';
import type { OperationContext, Services } from '../ports/operation-context.ts';
import type { SimulatedLogin } from '../sandbox/control-plane.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import type { Database } from '../storage/open-database.ts';
import { planSeededVault, plantSeedData } from './seed-data.ts';

/** The initial data of a sandbox. */
export interface Seeds {
  readonly config: Pick<SandboxConfig, 'seedData' | 'jwtPublicKeyPem'>;
  readonly appId: string;
  readonly appSecret: string;
  readonly services: Services;
  readonly database: Database;
  readonly chains: Pick<SimulatedChains, 'has' | 'earn'>;
  /** The simulated login, whose tokens the new app accepts unless it is started with another key. */
  readonly login: () => Pick<SimulatedLogin, 'verificationKey'>;
}

/** Creates the app and, if configured, the named seed data in an empty database. */
export async function plantSeeds(seeds: Seeds): Promise<void> {
  await inTransaction(seeds, async (context) => {
    const simulated = { jwt_auth: { verification_key: seeds.login().verificationKey } };
    const wanted = { ...simulated, ...settingsOf(seeds), ...acmeApp.settings };
    const settings = checkAppSettings(wanted, context);
    await createApp(context, {
      id: seeds.appId,
      name: acmeApp.name,
      secret: seeds.appSecret,
      settings: await sealTestCodes(context.keyStore, seeds.appId, settings),
    });
    if (seeds.config.seedData) await plantSeedData(context, seeds.chains.has);
    // CHOICE: seed data creates no events, because it represents the state before any endpoint existed.
    await dropEvents(context.em);
  });
  await planVaults(seeds);
}

async function planVaults({ config, database, chains }: Seeds): Promise<void> {
  if (config.seedData) await planSeededVault(database.orm.em.fork(), chains);
}

/**
 * Creates the seeds. If the app already exists, only updates its credentials and settings. Returns whether the seeds
 * were created.
 */
export async function ensureSeeds(seeds: Seeds): Promise<boolean> {
  const app = await getApp(seeds.database.orm.em.fork(), seeds.appId);
  if (app === undefined) {
    await plantSeeds(seeds);
    return true;
  }
  await planVaults(seeds);
  await inTransaction(seeds, async (context) => {
    const wanted = hashAppSecret(seeds.appSecret, context.nowMs).hash;
    const isKnown = secretsInForce(app.secretHashes, context.nowMs).some(({ hash }) => hash === wanted);
    if (!isKnown) await rotateAppSecret(context, app.id, { overlapMs: 0, secret: seeds.appSecret });
    const settings = checkAppSettings(settingsOf(seeds), context);
    if (Object.keys(settings).length > 0) await updateApp(context, app.id, { settings });
  });
  return false;
}

function settingsOf({ config }: Seeds): AppSettings {
  const { jwtPublicKeyPem } = config;
  return jwtPublicKeyPem === undefined ? {} : { jwt_auth: { verification_key: jwtPublicKeyPem } };
}

function inTransaction(
  { services, database, appId }: Seeds,
  work: (context: OperationContext) => Promise<void>,
): Promise<void> {
  return inUnitOf(unitsOf(database))((em, notes) =>
    work({
      ...services,
      em,
      notes,
      app: { id: appId },
      nowMs: services.clock.now(),
      requestId: 'seeds',
      proof: {
        signatures: [],
        canonicalPayloads: () => [],
        expiryMs: undefined,
        userId: undefined,
        noted: {},
        urlOf: () => assert.fail('a seed proposed an intent'),
        payloadsOf: () => assert.fail('a seed proposed an intent'),
      },
      // INVARIANT: seeds are only rows, and nothing is sent.
      afterCommit: () => assert.fail('a seed left something for after the commit'),
      afterRefusal: () => undefined,
      noteSignatures: () => undefined,
      inUnit: (work) => work(em, notes),
    }),
  );
}
