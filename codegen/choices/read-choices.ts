/** One `CHOICE:` comment. */
export interface Choice {
  /** The path relative to the root. */
  readonly path: string;
  /** The declaration to which the comment belongs. Undefined at the top level of a file. */
  readonly symbol: string | undefined;
  /** The comment as one line, without `CHOICE:`. */
  readonly text: string;
}

/** Returns the choices in one file, in order. */
export function choicesOf(path: string, source: string): Choice[] {
  const lines = source.split('\n');
  return lines.flatMap((line, start) => {
    if (!/^\s*(\/\*\*|\*|\/\/|#).*\bCHOICE: /.test(line)) return [];
    const { text, end } = readComment(lines, start);
    return [{ path, symbol: path.endsWith('.yaml') ? keyAt(lines, end) : symbolAt(lines, end), text }];
  });
}

// Returns the text of the line `/** text */`, ` * text`, `// text` or `# text`.
function textOf(line: string): string {
  return line
    .replace(/^\s*(\/\*\*?|\*(?!\/)|\/\/|#)?\s?/, '')
    .replace(/\s*\*\/\s*$/, '')
    .trim();
}

/** Reads the paragraph of a comment that begins with the mark, and returns the first line after the whole comment. */
function readComment(lines: readonly string[], start: number): { text: string; end: number } {
  const first = lines[start] ?? '';
  const isLine = /^\s*(\/\/|#)/.test(first);
  const isComment = (line: string) => (isLine ? /^\s*(\/\/|#)/.test(line) : /^\s*\*/.test(line));
  const parts = [textOf(first).replace(/^.*?\bCHOICE: /, '')];
  let end = start + 1;
  let isParagraph = !/\*\/\s*$/.test(first);
  for (
    ;
    end < lines.length && isComment(lines[end] ?? '') && (isLine || !/\*\/\s*$/.test(lines[end - 1] ?? ''));
    end += 1
  ) {
    const text = textOf(lines[end] ?? '').replace(/^\/$/, '');
    isParagraph &&= text !== '' && !/^(@|[A-Z]+: )/.test(text);
    if (isParagraph) parts.push(text);
  }
  return { text: parts.join(' '), end };
}

const declaration =
  /^\s*(?:export )?(?:async )?(?:function\*?|const|let|class|interface|type|enum)\s+([A-Za-z_$][\w$]*)/;
const member = /^\s*(?:readonly |async )*([A-Za-z_$][\w$]*)\??(?:\(|:)/;

/** Returns the name that is declared after a comment, or else the top-level declaration around it. */
function symbolAt(lines: readonly string[], end: number): string | undefined {
  const next = lines[end] ?? '';
  if (/^\S/.test(next)) return declaration.exec(next)?.[1];
  for (let index = end - 1; index >= 0; index -= 1) {
    const line = lines[index] ?? '';
    if (!/^\S/.test(line)) continue;
    const outer = declaration.exec(line)?.[1];
    if (outer !== undefined) return /^ {2}\S/.test(next) ? innerOf(outer, next) : outer;
  }
  return undefined;
}

/** Returns `outer.name` for a member of an object or interface. */
function innerOf(outer: string, line: string): string {
  const name = member.exec(line)?.[1];
  return name === undefined || /^(if|for|while|switch|return|const|let|throw|await)$/.test(name)
    ? outer
    : `${outer}.${name}`;
}

/**
 * Returns the key after a comment in YAML, or else the closest enclosing key that names an operation, schema or path.
 */
function keyAt(lines: readonly string[], end: number): string | undefined {
  let indent = (lines[end] ?? '').search(/\S/);
  const keys: string[] = [];
  for (let index = end; index >= 0; index -= 1) {
    const match = /^(\s*)"?([^\s"#][^":]*?)"?:(\s|$)/.exec(lines[index] ?? '');
    if (match === null || (index !== end && (match[1] ?? '').length >= indent)) continue;
    indent = (match[1] ?? '').length;
    keys.unshift(match[2] ?? '');
  }
  return keys
    .filter(
      (key) => !['paths', 'components', 'schemas', 'webhooks', 'properties', 'parameters'].includes(key),
    )
    .slice(0, 3)
    .join(' ');
}
