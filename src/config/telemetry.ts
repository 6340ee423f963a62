import { type Environment, type Faults, items, oneOf, publicUrls, share } from './checks.ts';
import type { Reader } from './setting.ts';
import type { Settings } from './settings.ts';

/** Where traces and metrics are sent. */
export interface TelemetrySettings {
  /** The base URL of an OTLP/HTTP collector, without a trailing slash. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded. */
  readonly share: number;
  readonly service: string;
  readonly compression: 'gzip' | 'none';
}

const COMPRESSION = 'OTEL_EXPORTER_OTLP_COMPRESSION';
const readCompression = oneOf('gzip', 'none');
const own = ['otlpUrl', 'otlpHeaders', 'otlpService', 'traceShare'] as const;

/**
 * Reads the telemetry settings. Returns undefined if nothing is sent. The variables of OpenTelemetry apply where Custos
 * has none of its own. The SDK reads their values for headers, time limits and certificates. Faults never repeat a
 * header, which may be a credential.
 */
export function telemetrySettings(
  { faults, name, value }: Reader<Settings, 'serve'>,
  env: Environment,
): TelemetrySettings | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined;
  const ownUrl = value('otlpUrl');
  const url = ownUrl ?? (env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined);
  const nameOfUrl = ownUrl === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : name('otlpUrl');
  const found = {
    url: publicUrls(faults, nameOfUrl, url === undefined ? [] : [url])[0],
    headers: headersOf(faults, name('otlpHeaders'), value('otlpHeaders')),
    share:
      value('traceShare') ?? share(faults, 'OTEL_TRACES_SAMPLER_ARG', env.OTEL_TRACES_SAMPLER_ARG || '0.1'),
    service: value('otlpService') ?? (env.OTEL_SERVICE_NAME || 'custos'),
    compression: readCompression(faults, COMPRESSION, env[COMPRESSION] || 'gzip'),
  };
  if (found.url !== undefined) return { ...found, url: found.url };
  const ignored = own.filter((key) => value(key) !== undefined).map(name);
  if (ignored.length > 0) faults.push(`${ignored.join(', ')}: ${name('otlpUrl')} is missing`);
  return undefined;
}

/** Parses `name=value,name=value`, the format of OpenTelemetry's own settings. */
function headersOf(faults: Faults, name: string, list: string | undefined): Record<string, string> {
  const entries = items(list).map((item) => /^([\w-]+)=([\x21-\x7e ]+)$/.exec(item));
  if (entries.some((entry) => entry === null)) {
    faults.push(`${name}: expected \`name=value\`, separated by commas`);
  }
  return Object.fromEntries(entries.flatMap((entry) => (entry === null ? [] : [[entry[1]!, entry[2]!]])));
}
