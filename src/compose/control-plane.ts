import { BlockList } from 'node:net';
import type { SandboxConfig } from '../config.ts';
import type { AppDirectory } from '../domain/apps/app-directory.ts';
import { ApiError } from '../errors.ts';
import type { Mount } from '../http/app.ts';
import { createBrand } from '../http/brand.ts';
import type { Exchange } from '../http/exchange.ts';
import { createPipeline, type PipelineOptions } from '../http/pipeline.ts';
import { createResponseCheck } from '../http/response-check.ts';
import { inUnitOf, type OpenUnit } from '../http/unit-of-work.ts';
import type { JobRunner } from '../jobs/runner.ts';
import type { ControlContext, MovableChains, MovableClock } from '../sandbox/control-plane.ts';
import { runControlOperation } from '../sandbox/control-plane.ts';
import { operations } from '../sandbox/generated/operations.ts';
import { requestValidators } from '../sandbox/generated/request-validators.js';
import { responseValidators } from '../sandbox/generated/response-validators.js';
import type { Services } from '../services.ts';
import type { Database } from '../storage/open-database.ts';
import { eventContract } from './event-contract.ts';
import type { EventLog } from './event-log.ts';

interface ControlPlaneOptions extends Pick<PipelineOptions, 'transport' | 'log' | 'newRequestId'> {
  readonly config: Pick<SandboxConfig, 'host' | 'publicUrls' | 'prefix'>;
  /** The app that the sandbox began with. */
  readonly appId: string;
  readonly services: Services;
  readonly clock: MovableClock;
  readonly chains: MovableChains;
  readonly database: Database;
  readonly openUnit: OpenUnit;
  readonly apps: AppDirectory;
  readonly reset: () => Promise<void>;
  readonly jobs: Pick<JobRunner, 'settle'>;
  readonly eventLog: EventLog;
  /** Aborted when the server is about to stop. */
  readonly stopping: AbortSignal;
}

/** The control plane under `/_sandbox/`, through the same pipeline as every other request. */
export async function controlPlane(options: ControlPlaneOptions): Promise<Mount> {
  const { services, clock, chains, database, apps, reset, jobs, appId, eventLog } = options;
  // As a request's own unit of work: what follows a commit there follows this one too.
  const change: ControlContext['change'] = inUnitOf(options.openUnit);
  const context: Omit<ControlContext, 'signal'> = {
    clock,
    appId,
    events: eventContract(createBrand(options.config.prefix)),
    eventLog: () => eventLog.name(),
    entropy: services.entropy,
    ids: services.ids,
    jwks: services.jwks,
    chains,
    reset,
    settle: () => jobs.settle(),
    read: (work) => work(database.orm.em.fork()),
    change,
    async changeApps(work) {
      const changed = await change(work);
      apps.announceChange();
      return changed;
    },
  };
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log: options.log });
  const handle = await createPipeline({
    ...options,
    operations: Object.values(operations),
    validators: requestValidators,
    authenticate: requireLocalCaller(options.config),
    publicBaseUrls: () => [],
    async run(exchange) {
      const { operation, params } = exchange.route!;
      const input = { path: params, query: exchange.query, body: exchange.body };
      const signal = AbortSignal.any([options.stopping, goneSignal(exchange)]);
      const body = await runControlOperation(operation.id, input, { ...context, signal });
      check(exchange, operation.successStatus, body);
      return { status: operation.successStatus, body };
    },
  });
  return { prefix: '/_sandbox/', handle };
}

/** Aborted when the connection closes before the answer is written. */
function goneSignal({ response }: Exchange): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}

const nobody = { id: '', name: '' };

/**
 * Lets programs of this machine in, without credentials.
 *
 * CHOICE: for anybody else there is no control plane (404). A page of another site that the tester has open runs on
 * this machine too; it betrays itself by `Origin`, or by a `Host` that is none of ours (DNS rebinding).
 */
function requireLocalCaller({
  host,
  publicUrls,
}: ControlPlaneOptions['config']): PipelineOptions['authenticate'] {
  const ownHosts = new Set([
    'localhost',
    '127.0.0.1',
    '[::1]',
    host,
    ...publicUrls.map((url) => new URL(url).hostname),
  ]);
  return (exchange: Exchange) => {
    const { host: named = '', origin } = exchange.headers;
    const isOwnHost = URL.canParse(`http://${named}`) && ownHosts.has(new URL(`http://${named}`).hostname);
    const isForeignPage = origin !== undefined && origin.replace(/^https?:\/\//, '') !== named;
    if (!isLoopback(exchange.remoteAddress) || !isOwnHost || isForeignPage) throw new ApiError('not_found');
    exchange.app = nobody;
  };
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(address: string): boolean {
  // A BlockList also takes IPv4 addresses written as IPv6, `::ffff:127.0.0.1`.
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}
