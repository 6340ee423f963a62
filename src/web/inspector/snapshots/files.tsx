/** Saves the content of a snapshot, gzip in base64, as a file that `custos sandbox --load` can read. */
export async function saveFile(name: string, content: string): Promise<void> {
  const packed = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const address = URL.createObjectURL(await new Response(unpacked).blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

/** Reads the file of a snapshot into the format of the request body. */
export async function readFileBase64(file: File): Promise<string> {
  const packed = await new Response(file.stream().pipeThrough(new CompressionStream('gzip'))).blob();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(packed);
  });
}
