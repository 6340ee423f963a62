import type { SandboxConfig } from '../config.ts';
import { isLoopbackHost, requireOwnHost } from '../http/origins/local-caller.ts';
import type { PipelineOptions } from '../http/pipeline.ts';

/** Refuses what web pages of other sites send to a sandbox that only this machine reaches. */
export function fromOwnHost(
  config: SandboxConfig,
  authenticate: PipelineOptions['authenticate'],
): PipelineOptions['authenticate'] {
  if (!isLoopbackHost(config.host)) return authenticate;
  const requireHost = requireOwnHost(config);
  return (exchange) => {
    requireHost(exchange);
    return authenticate(exchange);
  };
}
