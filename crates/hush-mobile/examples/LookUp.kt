// Looks keys up privately, and prints their values: LookUpKt URL KEY..
import hushdb.Client
import hushdb.HushException
import hushdb.Key
import hushdb.Options
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking {
    val (url, keys) = arguments.first() to arguments.drop(1)
    // The token is for servers that require one, the CA certificate for servers with a private CA.
    val caCert = System.getenv("HUSHDB_CA_CERT")?.ifEmpty { null }?.let { File(it).readText() }
    val options = Options(token = System.getenv("HUSHDB_TOKEN")?.ifEmpty { null }, caCert = caCert)
    try {
        Client.connect(url, options).use { client ->
            client.table().use { table ->
                for (value in table.getMany(keys.map { Key.Text(it) })) {
                    println(value?.decodeToString() ?: "not found")
                }
            }
        }
    } catch (error: HushException) {
        System.err.println("${error::class.simpleName} ${error.code()}: ${error.message}")
        exitProcess(2)
    }
}
