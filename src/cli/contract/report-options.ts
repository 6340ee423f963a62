import { writeFileSync } from 'node:fs';
import { invalidOption } from '../sandbox-options.ts';

/** The destination of one report. An undefined `file` means standard output. */
export interface ReportTarget<Format extends string> {
  readonly format: Format;
  readonly file: string | undefined;
}

/**
 * Reads the values of `--format`: `junit` or `junit=report.xml`.
 *
 * @throws ConfigError
 */
export function readReportTargets<Format extends string>(
  values: readonly string[],
  formats: readonly Format[],
): ReportTarget<Format>[] {
  const targets = values.map((value) => {
    const [name = '', ...rest] = value.split('=');
    const format = formats.find((known) => known === name);
    if (format === undefined) {
      throw invalidOption(
        `--format: expected ${formats.join(', ')}, each with \`=<file>\` if wanted, got \`${value}\``,
      );
    }
    return { format, file: rest.length === 0 ? undefined : rest.join('=') };
  });
  if (targets.some(({ file }) => file === ''))
    throw invalidOption('--format: expected a file name after `=`');
  if (targets.filter(({ file }) => file === undefined).length > 1) {
    throw invalidOption('--format: only one report fits on standard output; name files for the others');
  }
  return targets;
}

/** Writes each report. `render` returns a report's text in a format, for a file or for standard output. */
export function writeReports<Format extends string>(
  targets: readonly ReportTarget<Format>[],
  render: (format: Format, isFile: boolean) => string,
): void {
  for (const { format, file } of targets) {
    const text = render(format, file !== undefined);
    if (file !== undefined) writeFileSync(file, text.endsWith('\n') ? text : `${text}\n`);
    else console.log(text.trimEnd());
  }
}
