/** The path of an operation with its parameters filled in. */
export function fillTemplate(template: string, path: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
}
