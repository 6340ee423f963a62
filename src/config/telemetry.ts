import { type Environment, items, oneOf, publicUrls, share } from './checks.ts';

/** Where traces and metrics are sent. */
export interface TelemetrySettings {
  /** Base URL of an OTLP/HTTP collector, without a trailing slash. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded. */
  readonly share: number;
  readonly service: string;
  readonly compression: 'gzip' | 'none';
}

export const telemetryNames = [
  'CUSTOS_OTLP_URL',
  'CUSTOS_OTLP_HEADERS',
  'CUSTOS_OTLP_SERVICE',
  'CUSTOS_TRACE_SHARE',
] as const;

/**
 * Undefined: nothing is sent. The variables of OpenTelemetry count where Custos has none of its own; what they say of
 * headers, time limits and certificates is read by its SDK. Faults never repeat a header, which may be a credential.
 */
export function telemetrySettings(faults: string[], env: Environment): TelemetrySettings | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined;
  const isOwn = env.CUSTOS_OTLP_URL !== undefined;
  const [name, url] = isOwn
    ? ['CUSTOS_OTLP_URL', env.CUSTOS_OTLP_URL]
    : ['OTEL_EXPORTER_OTLP_ENDPOINT', env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined];
  const settings = {
    url: publicUrls(faults, name!, url === undefined ? [] : [url])[0],
    headers: headersOf(faults, env.CUSTOS_OTLP_HEADERS),
    share: shareOf(faults, env),
    service: env.CUSTOS_OTLP_SERVICE ?? (env.OTEL_SERVICE_NAME || 'custos'),
    compression: oneOf(
      faults,
      'OTEL_EXPORTER_OTLP_COMPRESSION',
      env.OTEL_EXPORTER_OTLP_COMPRESSION || 'gzip',
      ['gzip', 'none'],
    ),
  };
  if (settings.url !== undefined) return { ...settings, url: settings.url };
  const useless = telemetryNames.filter((each) => env[each] !== undefined);
  if (useless.length > 0) faults.push(`${useless.join(', ')}: CUSTOS_OTLP_URL is missing`);
  return undefined;
}

function shareOf(faults: string[], env: Environment): number {
  const { CUSTOS_TRACE_SHARE: own, OTEL_TRACES_SAMPLER_ARG: standard } = env;
  if (own !== undefined) return share(faults, 'CUSTOS_TRACE_SHARE', own);
  return share(faults, 'OTEL_TRACES_SAMPLER_ARG', standard || '0.1');
}

/** `name=value,name=value`, as in OpenTelemetry's own settings. */
function headersOf(faults: string[], list: string | undefined): Record<string, string> {
  const entries = items(list).map((item) => /^([\w-]+)=([\x21-\x7e ]+)$/.exec(item));
  if (entries.some((entry) => entry === null)) {
    faults.push('CUSTOS_OTLP_HEADERS: expected `name=value`, separated by commas');
  }
  return Object.fromEntries(entries.flatMap((entry) => (entry === null ? [] : [[entry[1]!, entry[2]!]])));
}
