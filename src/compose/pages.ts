import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { acmeApp } from '../../mocks/apps.ts';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import { usdcVault } from '../../mocks/earn-vaults.ts';
import { treasuryQuorum } from '../../mocks/key-quorums.ts';
import { spendingPolicy } from '../../mocks/policies.ts';
import { acmeWallet } from '../../mocks/wallets.ts';
import type { SandboxConfig } from '../config/config.ts';
import { packageRoot } from '../config/package-root.ts';
import { KeyQuorumEntity } from '../domain/access/key-quorums/key-quorum.entity.ts';
import { PolicyEntity } from '../domain/access/policies/policy.entity.ts';
import { LinkedAccountEntity } from '../domain/access/user-records/user.entity.ts';
import type { Log } from '../ports/runtime.ts';
import { findSandboxPage } from '../sandbox/pages.ts';
import { isLoopbackHost, requireLocalCaller } from '../server/origins.ts';
import type { ReferenceDocument } from '../server/reference-document.ts';
import type { FindPage, Page, ReferenceOptions } from '../server/reference-pages.ts';
import type { Database } from '../storage/open-database.ts';

interface PagesOptions {
  readonly config: Pick<SandboxConfig, 'host' | 'publicUrls' | 'controlToken'>;
  /** The folder of the built inspector. By default, the one in this package. */
  readonly inspectorFolder: string | undefined;
  /** The certificate authority as PEM. Clients in other containers download and trust it. */
  readonly caPem: string;
  readonly log: Log;
}

const START = 'index.html';

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

// A page may load resources only from its own server, and no other page can frame it.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/**
 * Returns the pages of a sandbox: the inspector at `/`, and the pages of simulated providers.
 *
 * The inspector is a client of the control plane, so it is available to the callers that may use the control plane.
 */
export function sandboxPages({ config, inspectorFolder, caPem, log }: PagesOptions): FindPage {
  const folder = inspectorFolder ?? join(packageRoot(), 'dist', 'inspector');
  const admit = requireLocalCaller(config, config.controlToken);
  let inspector: ReadonlyMap<string, Page> | undefined;
  const authority = { contentType: 'application/x-pem-file', content: Buffer.from(caPem) };
  return (path) => {
    if (path === '/ca.pem') return authority;
    if (path !== '/' && !path.startsWith('/inspector/')) return findSandboxPage(path);
    inspector ??= readInspector(folder, admit, log);
    // If the inspector was not built, `/` redirects to the reference.
    return inspector.get(path) ?? findSandboxPage(path);
  };
}

/**
 * Reads all files of the inspector into memory, keyed by path, so that a rebuild while the server runs cannot mix two
 * versions.
 */
function readInspector(folder: string, admit: Page['admit'], log: Log): ReadonlyMap<string, Page> {
  if (!existsSync(join(folder, START))) {
    log.warn({ folder }, 'the inspector is not built; run `npm run build`');
    return new Map();
  }
  return new Map(
    readdirSync(folder).map((name) => [
      name === START ? '/' : `/inspector/${name}`,
      {
        contentType: contentTypes[extname(name)] ?? 'application/octet-stream',
        content: readFileSync(join(folder, name)),
        headers: name === START ? startHeaders : assetHeaders,
        admit,
      },
    ]),
  );
}

const startHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
};

// The names of these files change with their content.
const assetHeaders = { 'cache-control': 'private, max-age=31536000, immutable' };

const publishedSigners = [
  { name: 'Alice', privateKey: aliceKey.privateKey },
  { name: 'Bob', privateKey: bobKey.privateKey },
  { name: 'Carol', privateKey: carolKey.privateKey },
];

interface OwnExamples {
  readonly baseUrl: () => string;
  readonly caFile: string;
  readonly appId: string;
  readonly appSecret: string;
  readonly config: Pick<SandboxConfig, 'host' | 'seedData'>;
  readonly database: Database;
}

interface Parameter {
  readonly name?: string;
  readonly required?: boolean;
  readonly example?: unknown;
}

/**
 * Returns the reference with the sandbox's own ids, so that its example requests can be sent unchanged.
 *
 * CHOICE: the secret is filled in only if it is the published one and only this machine can reach the sandbox,
 * because every client of the sandbox can read the page.
 */
export function sandboxReference({
  appId,
  appSecret,
  baseUrl,
  caFile,
  config,
  database,
}: OwnExamples): ReferenceOptions {
  const isPublished = appSecret === acmeApp.secret && isLoopbackHost(config.host);
  const own: Record<string, string> = { 'service-app-id': appId, app_id: appId };
  if (config.seedData) own.wallet_id = `ext_wal_${acmeWallet.external_id}`;
  return {
    tailor: (document) => withExamples(document, own),
    readTexts: () =>
      new Map([
        ['https://127.0.0.1:4010', baseUrl()],
        ['.custos/ca.pem', caFile],
        [acmeApp.id, appId],
      ]),
    caFile,
    credentials: isPublished ? { appId, appSecret } : undefined,
    ...(config.seedData
      ? { signers: publishedSigners, readIds: () => readSeededIds(database.orm.em.fork(), appId) }
      : {}),
  };
}

/** Fills in examples. Optional parameters get none, because the page would send each of them. */
function withExamples(document: ReferenceDocument, own: Readonly<Record<string, string>>): ReferenceDocument {
  const tailored = (parameter: Parameter): object => {
    const { name = '', required, example, ...rest } = parameter;
    if (parameter.name === undefined) return parameter;
    if (required !== true) return { ...rest, name, required };
    return { ...rest, name, required, ...(example === undefined ? {} : { example: own[name] ?? example }) };
  };
  const { parameters } = document.components;
  return {
    ...document,
    paths: mapValues(document.paths, (methods) =>
      mapValues(methods, (operation) =>
        operation.parameters === undefined
          ? operation
          : { ...operation, parameters: operation.parameters.map(tailored) },
      ),
    ),
    components: { ...document.components, parameters: mapValues(parameters, tailored) },
  };
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  to: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, to(value)]));
}

/** Reads the current ids of the seed data, by parameter or property name. Deleted resources are omitted. */
async function readSeededIds(em: SqlEntityManager, appId: string): Promise<Readonly<Record<string, string>>> {
  const policy = await em.findOne(PolicyEntity, { appId, name: spendingPolicy.name });
  const quorum = await em.findOne(KeyQuorumEntity, { appId, displayName: treasuryQuorum.display_name });
  const account = await em.findOne(LinkedAccountEntity, { appId, type: 'custom_auth', subject: 'alice' });
  return {
    wallet_id: `ext_wal_${acmeWallet.external_id}`,
    vault_id: usdcVault.id,
    ...(policy === null ? {} : { policy_id: policy.id }),
    ...(quorum === null ? {} : { key_quorum_id: quorum.id, owner_id: quorum.id }),
    ...(account === null ? {} : { user_id: account.userId }),
  };
}
