// Builds tables with the real program, and serves them on loopback.
import java.io.File
import java.net.HttpURLConnection
import java.net.URI
import java.nio.file.Files
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread

class Server(val url: String, private val process: Process) : AutoCloseable {
    override fun close() {
        process.destroyForcibly().waitFor()
    }
}

/** A temporary folder for tables and caches, and the programs that run in it. */
class Scratch(private val program: String) : AutoCloseable {
    val dir: File = Files.createTempDirectory("hushdb-kotlin-").toFile()

    private fun start(vararg arguments: String): Process {
        val builder = ProcessBuilder(program, *arguments)
        builder.environment()["XDG_CACHE_HOME"] = "$dir/cache"
        builder.environment()["XDG_STATE_HOME"] = "$dir/state"
        return builder.redirectErrorStream(true).start()
    }

    /** Runs a command, and returns its output. Fails if the command fails. */
    fun hushdb(vararg arguments: String): String {
        val process = start(*arguments)
        val said = process.inputStream.bufferedReader().readText()
        check(process.waitFor() == 0) { said }
        return said
    }

    /** Builds a table from rows in CSV or objects in JSON, and returns its folder. */
    fun build(name: String, rows: List<String>, vararg options: String): String {
        val source = File(dir, if (rows.first().startsWith("{")) "$name.jsonl" else "$name.csv")
        source.writeText(rows.joinToString("\n", postfix = "\n"))
        hushdb("build", source.path, "--out", "$dir/$name", *options)
        return "$dir/$name"
    }

    fun serve(tables: List<String>, vararg options: String): Server {
        val process = start("serve", *tables.toTypedArray(), "--listen", "127.0.0.1:0", *options)
        val said = process.inputStream.bufferedReader()
        val line = said.readLine() ?: "nothing"
        check(line.startsWith("listening on http")) { "the server said: $line" }
        thread(isDaemon = true) { said.forEachLine {} } // Drains the pipe: a full one would block the server.
        val server = Server(line.split(" ")[2], process)
        val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30)
        while (!isReady(server.url)) {
            check(System.nanoTime() < end && process.isAlive) { "the server at ${server.url} did not become ready" }
            Thread.sleep(25)
        }
        return server
    }

    private fun isReady(url: String): Boolean {
        val request = URI("$url/readyz").toURL().openConnection() as HttpURLConnection
        return runCatching { request.responseCode == 200 }.getOrDefault(false)
    }

    override fun close() {
        dir.deleteRecursively()
    }
}
