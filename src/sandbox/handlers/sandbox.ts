import { knownChains } from '../../engine/assets/known-chains.ts';
import { notFound } from '../../errors.ts';
import { listActionViews } from '../actions.ts';
import type { Handler } from '../control-plane.ts';
import { hasJsonRpc } from '../controllable-chains.ts';
import type { Operations } from '../generated/operations.ts';

export const resetSandbox: Handler<'resetSandbox'> = async (_input, context) => {
  await context.reset();
  return { reset: true, now_ms: context.clock.now() };
};

export const getConnection: Handler<'getConnection'> = async (_input, context) => {
  const { chains, clientConfig, appId, prefix, version } = context;
  const baseUrl = context.baseUrl();
  const rpcUrl = clientConfig.rpcUrl();
  return {
    base_url: baseUrl,
    docs_url: `${baseUrl}/docs`,
    app_id: appId,
    app_secret: clientConfig.appSecret,
    ca_file: clientConfig.caFile,
    version,
    header_prefix: prefix,
    signers: clientConfig.signers.map(({ name, publicKey }) => ({ name, public_key: publicKey })),
    rpc_urls: [false, true]
      .flatMap((isTestnet) => knownChains({ isTestnet }))
      .filter(({ caip2 }) => chains.has(caip2) && hasJsonRpc(caip2))
      .map(({ name, caip2 }) => ({ chain: name, chain_id: caip2, url: `${rpcUrl}/${name}` })),
  };
};

type Document = Operations['getControlDocument']['response'];

export const getControlDocument: Handler<'getControlDocument'> = async (_input, { document }) =>
  document() as Document;

export const listDivergences: Handler<'listDivergences'> = async ({ query: { operation } }) => {
  // Loaded on demand, because it contains the texts of all decisions.
  const { divergences, sharedDecisions, simulatedParts } = await import('../generated/divergences.ts');
  const found = divergences.filter((each) => operation === undefined || each.operation === operation);
  if (found.length === 0) throw notFound('operation');
  return {
    data: found.map(({ operation, simulated, decisions }) => ({
      operation,
      simulated: simulatedParts.filter(({ name }) => simulated.includes(name)),
      decisions: [...decisions],
    })),
    shared: [...sharedDecisions],
  };
};

export const listSandboxActions: Handler<'listSandboxActions'> = ({ query }, context) =>
  listActionViews(query, context);
