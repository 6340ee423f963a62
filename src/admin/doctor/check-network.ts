import { connectChains } from '../../adapters/chain-rpc/connect.ts';
import { silentLog } from '../../adapters/log.ts';
import { systemClock } from '../../adapters/runtime.ts';
import { createWebhookSender, nameServerLookup, publicHttpsOnly } from '../../adapters/webhook-http.ts';
import type { ServeConfig } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import { type Finding, fault, ok, warning } from '../../tools/findings.ts';

const RPC = settings.rpc.variable;
const STALE_SECONDS = 600;
const WEBHOOK_MS = 10_000;

/** Checks for each node whether it responds, belongs to the chain, and is up to date. */
export async function checkNodes({ rpc }: Pick<ServeConfig, 'rpc'>): Promise<Finding[]> {
  if (rpc.length === 0) return [ok('nodes', `no chain is configured (${RPC})`)];
  const nodes = rpc.flatMap(({ caip2, urls }) => urls.map((url) => ({ caip2, url })));
  const findings = await Promise.all(nodes.map(checkNode));
  const alone = rpc.filter(({ urls }) => urls.length === 1).map(({ caip2 }) => caip2);
  if (alone.length === 0) return findings;
  const text = `${alone.join(', ')}: one node decides alone about fees and nonces`;
  return [...findings, warning('nodes', text, `list nodes of different providers in ${RPC}`)];
}

async function checkNode({ caip2, url }: { caip2: string; url: string }): Promise<Finding> {
  // Only the host is shown, because the path may contain an API key.
  const name = `${caip2}, ${new URL(url).host}`;
  const chain = connectChains([{ caip2, urls: [url] }], silentLog).find(caip2);
  try {
    const latest =
      chain?.kind === 'evm' || chain?.kind === 'solana' ? await chain.latestSeconds?.() : undefined;
    if (latest === undefined) return warning('nodes', `${name}: unknown kind of chain`, 'remove it');
    const age = Math.max(0, Math.round(systemClock.now() / 1000 - latest));
    const text = `${name}: the latest block is ${age} s old`;
    return age < STALE_SECONDS
      ? ok('nodes', text)
      : warning('nodes', text, 'the node lags behind; replace it');
  } catch (error) {
    return fault('nodes', `${name}: ${(error as Error).message}`, `correct or replace it in ${RPC}`);
  }
}

/** Sends one request in the way webhooks are sent. Sends none when `url` is undefined. */
export async function checkEgress(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [];
  const sender = createWebhookSender({ guard: publicHttpsOnly, lookup: nameServerLookup() });
  const unfit = sender.urlFault(url);
  if (unfit !== undefined) return [fault('egress', `\`${url}\`: ${unfit}`, 'name a public HTTPS URL')];
  const event = { type: 'doctor', appId: 'doctor' };
  const { status, failure } = await sender.send({
    url,
    headers: {},
    bodyText: '{}',
    event,
    timeoutMs: WEBHOOK_MS,
  });
  await sender.close();
  if (failure === undefined) return [ok('egress', `\`${url}\` was reached and responded with ${status}`)];
  const advice = 'webhooks need direct HTTPS to the internet and name servers that resolve public names';
  return [fault('egress', `\`${url}\` cannot be reached: ${failure}`, advice)];
}
